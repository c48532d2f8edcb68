// SPDX-License-Identifier: MIT
// io_uring through liburing 2.3 or later: a submission is a ring entry that goes to the kernel with
// the next poll; a poll that finds neither completions nor the kernel's flag makes no system call.
// See kernel_ring.hpp for the kernel's properties and their consequences.
#include <liburing.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <new>
#include <optional>
#include <utility>

#include "attempt.hpp"
#include "base/faults.hpp"
#include "base/sigpipe.hpp"
#include "base/system_calls.hpp"
#include "exact_wait.hpp"
#include "factories.hpp"
#include "kernel_ring.hpp"
#include "retries.hpp"
#include "uring_entry.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

class uring_backend final : public backend {
 public:
  explicit uring_backend(const backend_options& options)
      : ring_(options), workers_for_pipes_(!pipes_know_nowait()) {}
  void abandon() noexcept override { ring_.abandon(); }
  std::string_view name() const noexcept override { return "io_uring"; }
  time_point now() const noexcept override { return std::chrono::steady_clock::now(); }
  void listen(int wake_descriptor) override {
    wake_descriptor_ = wake_descriptor;
    arm_wake();
  }

  bool submit(operation& op) noexcept override {
    const verb_row& row = row_of(op.kind);
    const bool on_file = row.access != file_access::none;
    if (on_file && done_without_ring(op, row)) return true;
    if (row.may_raise_sigpipe && ++writes_ == 1 && ring_.acts_any_time()) guard_.emplace();
    const bool waits_first = on_file && is_tried_when_ready(op);
    waits_first ? wait_until_ready(op) : prepare(op);
    return false;
  }

  void cancel(operation& op) noexcept override {
    if (op.cancelling) return;
    op.cancelling = true;
    if (op.stage == stage_pausing) {
      retries_.remove(notes_of(op).pause);
      op.result = -ECANCELED;
      finish(op);
      return;
    }
    io_uring_sqe* entry = next_entry();
    ::io_uring_prep_cancel(entry, &op, 0);
    ::io_uring_sqe_set_data(entry, nullptr);
  }

  void poll(time_point deadline, completions& ended_operations) override {
    reap();
    if (!results_.empty() || woken_ || deadline == time_point::min()) {
      try_again();
      if (ring_.must_enter()) {
        enter();
        reap();
      }
    } else {
      do {
        resubmitted_ = false;
        enter_and_wait(std::min(deadline, retries_.first_due()));
        reap();
        try_again();
      } while (results_.empty() && !woken_ && resubmitted_ && now() < deadline);
    }
    woken_ = false;
    ended_operations.append(results_);
  }
  int wait_descriptor(time_point& due) noexcept override {
    const int ring_news = ring_.news();
    enter();
    reap();
    const bool news = !results_.empty() || woken_ || ring_.has_submissions();
    due = news ? time_point::min() : retries_.first_due();
    return ring_news;
  }

 private:
  /// Calls at a file's position must keep their order, which the ring does not guarantee. Cached
  /// data is faster without the ring, unless the ring is about to be entered for other operations.
  /// Only the plain call rejects an offset in a pipe. Operations that this kernel's ring lacks are
  /// for a plain thread.
  /// Returns: whether the operation has completed, or is not for the ring.
  bool done_without_ring(operation& op, const verb_row& row) noexcept {
    if (op.on_disk && (op.may_batch || ring_.has_submissions())) return false;
    if (row.access == file_access::position) {
      return (workers_for_pipes_ || has_position(op.fd)) && attempt(op);
    }
    if (row.access == file_access::whole && op.kind != verb::statx) {
      return !ring_.knows(row.ring_code) && attempt(op);
    }
    return attempt(op) && op.result != operation::would_block_thread;
  }

  /// Returns: an entry of the submission queue; a full queue is flushed first.
  io_uring_sqe* next_entry() noexcept {
    io_uring_sqe* entry = faults::next("io_uring_get_sqe") != 0 ? nullptr : ring_.entry();
    while (entry == nullptr) {
      enter();
      reap();  // a kernel whose completion queue overflows takes nothing until it is emptied
      entry = ring_.entry();
    }
    return entry;
  }

  /// Where a kernel worker would block in a pipe, the call is made here, after a poll.
  bool is_tried_when_ready(const operation& op) const noexcept {
    return workers_for_pipes_ && at_position(op);
  }

  /// The operation's descriptor is ready, or a pause is over.
  void go_on(operation& op) noexcept {
    op.stage = stage_ready;
    resubmitted_ = true;
    if (!is_tried_when_ready(op)) return prepare(op);
    if (attempt(op)) return finish(op);
    waits_in_vain(op) ? pause(op) : wait_until_ready(op);
  }

  /// The kernel could not make a worker for the operation, and has ended it.
  void do_without_worker(operation& op) noexcept {
    const file_access access = row_of(op.kind).access;
    const bool on_file = access == file_access::offset || access == file_access::whole;
    if (on_file) op.result = operation::would_block_thread;
    on_file || attempt(op) ? finish(op) : wait_until_ready(op);
  }

  void prepare(operation& op) noexcept {
    io_uring_sqe* entry = next_entry();
    fill_entry(*entry, op);
    ::io_uring_sqe_set_data(entry, &op);
  }

  void wait_until_ready(operation& op) noexcept {
    op.stage = stage_polling;
    resubmitted_ = true;
    arm_poll(&op, op.fd, readiness_of(op));
  }

  void arm_poll(void* data, int fd, short events, unsigned mode = 0) noexcept {
    io_uring_sqe* entry = next_entry();
    ::io_uring_prep_poll_add(entry, fd, static_cast<unsigned>(events));
    entry->len = mode;
    ::io_uring_sqe_set_data(entry, data);
  }

  /// Each write is reported, so nobody need read the descriptor.
  void arm_wake() noexcept { arm_poll(this, wake_descriptor_, POLLIN, IORING_POLL_ADD_MULTI); }

  void pause(operation& op) noexcept {
    op.stage = stage_pausing;
    resubmitted_ = true;
    retries_.add((::new (static_cast<void*>(op.scratch)) uring_notes)->pause, op);
  }

  void try_again() noexcept {
    retries_.take_due([this](operation& op) { go_on(op); });
  }

  bool guards_entry() const noexcept { return writes_ > 0 && !ring_.acts_any_time(); }
  void enter() noexcept {
    std::optional<sigpipe_guard> guard;
    if (guards_entry()) guard.emplace();
    ring_.enter();
  }
  void enter_and_wait(time_point deadline) noexcept {
    std::optional<sigpipe_guard> guard;
    if (guards_entry()) guard.emplace();
    ring_.enter_and_wait(deadline);
  }

  void reap() noexcept {
    if (::io_uring_cq_ready(ring_.get()) != 0) take_results();
  }

  [[gnu::noinline]] void take_results() noexcept {
    ring_.take_completions([this](void* data, std::int32_t result, bool more) {
      if (data == this) {
        woken_ = true;
        unwatched_ = !more;
      } else if (data != nullptr) {
        auto& op = *static_cast<operation*>(data);
        op.result = result;
        completions_.push(op);
      }
    });
    settle();
  }

  /// Handles the results of a round, once their places in the completion queue are free again.
  void settle() noexcept {
    completions round = completions_;
    completions_ = completions();
    while (operation* op = round.pop()) settle(*op);
    if (std::exchange(unwatched_, false)) arm_wake();
  }

  void settle(operation& op) noexcept {
    if (op.result >= 0 && op.stage == 0 && !only_waits(op)) [[likely]] {
      finish(op);
    } else {
      settle_slowly(op);
    }
  }

  [[gnu::noinline]] void settle_slowly(operation& op) noexcept {
    if (op.stage == stage_polling && op.result >= 0 && !op.cancelling) return go_on(op);
    if (op.stage == stage_refused) accept_refusal(op);
    if (only_waits(op) && !reports_what_was_asked(op)) return;
    if (!op.cancelling && tries_again(op)) return;
    if (op.cancelling && (op.stage == stage_polling || op.result == -EAGAIN)) {
      op.result = -ECANCELED;
    }
    finish(op);
  }

  /// Returns: whether the operation continues: once more, or in another way.
  bool tries_again(operation& op) noexcept {
    const bool has_readiness = row_of(op.kind).access != file_access::whole && !may_not_wait(op);
    if (op.result == -EINTR) {
      resubmitted_ = true;
      prepare(op);
    } else if (op.result == -ECANCELED && !only_waits(op)) {
      do_without_worker(op);
    } else if (op.result == -EAGAIN && !only_waits(op) && has_readiness) {
      const bool in_vain = op.stage == stage_ready && waits_in_vain(op);
      in_vain ? pause(op) : wait_until_ready(op);
    } else {
      return false;
    }
    return true;
  }

  void finish(operation& op) noexcept {
    if (row_of(op.kind).may_raise_sigpipe && --writes_ == 0) guard_.reset();
    results_.push(op);
  }

  /// Returns: whether a wait_fd has ended: false if the ring reported events not asked for.
  bool reports_what_was_asked(operation& op) noexcept {
    bool in_vain = false;
    if (op.stage == stage_exact) {
      op.stage = 0;
      sys::close(notes_of(op).exact);
      in_vain = op.result >= 0 && !attempt(op);
    } else if (op.result >= 0) {
      op.result &= readiness_of(op) | POLLERR | POLLHUP | POLLNVAL;
      // Ordinary bytes wake a socket's polls for POLLPRI, too. Other files may answer only once.
      in_vain = op.result == 0 || ((op.result & POLLPRI) != 0 && is_socket(op.fd) && !attempt(op));
    }
    if (!in_vain) return true;
    op.result = op.cancelling ? -ECANCELED : wait_exactly(op);
    return op.result < 0;
  }

  /// Returns: 0, or minus an errno value.
  std::int32_t wait_exactly(operation& op) noexcept {
    const int descriptor = make_exact_wait(op);
    if (descriptor < 0) return descriptor;
    (::new (static_cast<void*>(op.scratch)) uring_notes)->exact = descriptor;
    op.stage = stage_exact;
    resubmitted_ = true;
    arm_poll(&op, descriptor, POLLIN);
    return 0;
  }

  kernel_ring ring_;
  const bool workers_for_pipes_;
  int wake_descriptor_ = -1;
  bool unwatched_ = false;    // the ring's poll of the wake descriptor is over
  bool woken_ = false;        // the wake descriptor was written to since the last poll()
  bool resubmitted_ = false;  // an operation came back from the kernel and was submitted again
  std::size_t writes_ = 0;
  std::optional<sigpipe_guard> guard_;
  retries retries_;
  completions completions_, results_;
};

}  // namespace

std::unique_ptr<backend> make_io_uring_backend(const backend_options& options) {
  return std::make_unique<uring_backend>(options);
}

}}}  // namespace motet::MOTET_ABI::detail
