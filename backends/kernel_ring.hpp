// SPDX-License-Identifier: MIT
// An io_uring ring: opening, entering and closing it. Filling in its entries is the task of
// uring_backend.
//
// Properties of the kernel, and their consequences:
// - With DEFER_TASKRUN nothing completes until the thread enters the ring; TASKRUN_FLAG is set when
//   completions are waiting for that.
// - An operation on a non-blocking descriptor fails with -EAGAIN instead of waiting. It is then
//   submitted as a poll, and again once the descriptor is ready.
// - A write to a pipe without readers raises SIGPIPE in the thread that enters the ring: while a
//   write is in flight, entering is guarded; without DEFER_TASKRUN, all that the thread does.
// - A file's position is moved by plain calls, never by the ring: the ring reads the position
//   without the file's lock, so that two writes may hit the same place; and a late completion (with
//   O_DIRECT, any completion) does not move it.
// - Before Linux 6.4 pipes in blocking mode do not know RWF_NOWAIT: a kernel worker makes the call
//   and blocks in it.
// - If a limit allows no further worker, an operation that needs one ends with -ECANCELED.
// - A poll reports POLLRDHUP even if the caller did not ask for it.
// - The kernel ends the remaining operations some time after the ring is closed, so no operation
//   that writes to memory may be left in it. The ring polls the wake descriptor; it never reads it.
#pragma once

#include <liburing.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <motet/runtime/backend.hpp>
#include <new>
#include <optional>
#include <system_error>

#include "base/disabled.hpp"
#include "base/faults.hpp"
#include "base/ring_codes.hpp"
#include "base/system_calls.hpp"
#include "clock_offset.hpp"
#include "owned_descriptor.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

class kernel_ring {
 public:
  using time_point = clock::time_point;

  /// Throws: std::system_error if the kernel, or a filter, refuses to open or to enter the ring.
  explicit kernel_ring(const backend_options& options) {
    open(options);
    try {
      ::io_uring_ring_dontfork(&ring_);
      // Saves a look-up at each enter; may be refused.
      registered_ = !disabled("registered_ring") && ::io_uring_register_ring_fd(&ring_) == 1;
      if (!disabled("absolute_timeouts") && !clock_has_offset())
        wait_flags_ |= enter_absolute_timer;
      if (!disabled("no_iowait") && (ring_.features & feature_no_iowait) != 0) {
        wait_flags_ |= enter_no_iowait;
      }
      probe();
    } catch (...) {
      ::io_uring_queue_exit(&ring_);
      throw;
    }
  }
  kernel_ring(const kernel_ring&) = delete;
  kernel_ring& operator=(const kernel_ring&) = delete;
  ~kernel_ring() {
    if (!abandoned_) ::io_uring_queue_exit(&ring_);
  }

  /// Called in a forked child, in which the ring is not mapped.
  void abandon() noexcept {
    sys::close(ring_.ring_fd);
    abandoned_ = true;
  }

  io_uring* get() noexcept { return &ring_; }

  /// Returns: an eventfd that becomes readable when the kernel completes something after this call;
  ///          -1 if it cannot be had. The ring's own descriptor does not report the work that a
  ///          ring with DEFER_TASKRUN still has to do in the thread. The eventfd is registered on
  ///          each call: up to Linux 6.18 at least, the kernel signals it only once for completions
  ///          that another eventfd caused, and up to 20 ms late.
  int news() noexcept {
    if (news_.number < 0) news_.number = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (news_.number < 0) return -1;
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t size = sys::read(news_.number, &count, sizeof count);
    if (news_registered_) ::io_uring_unregister_eventfd(&ring_);
    news_registered_ = ::io_uring_register_eventfd(&ring_, news_.number) == 0;
    return news_registered_ ? news_.number : -1;
  }
  /// Calls `take(data, result, more)` for each completion that is there, and then frees their
  /// places; `more`: its operation goes on.
  template <typename Take>
  void take_completions(Take take) noexcept {
    unsigned head = 0;
    unsigned position = 0;
    io_uring_cqe* entry = nullptr;
    io_uring_for_each_cqe(&ring_, head, entry) {
      ++position;
      take(::io_uring_cqe_get_data(entry), entry->res, (entry->flags & IORING_CQE_F_MORE) != 0);
    }
    ::io_uring_cq_advance(&ring_, position);
  }
  /// Returns: null if the submission queue is full.
  io_uring_sqe* entry() noexcept { return ::io_uring_get_sqe(&ring_); }
  /// Whether the kernel runs completions in any system call of the thread, which it does without
  /// DEFER_TASKRUN.
  bool acts_any_time() const noexcept { return acts_any_time_; }

  /// Whether this kernel's rings have the operation; the kernel is asked for new ones only, once.
  bool knows(std::uint8_t code) noexcept {
    if (code <= IORING_OP_SENDMSG_ZC) [[likely]]
      return true;
    if (!newer_) newer_ = ask_for_newer();
    return code < 64 && (*newer_ >> code & 1) != 0;
  }

  bool must_enter() const noexcept {
    const unsigned flags = __atomic_load_n(ring_.sq.kflags, __ATOMIC_RELAXED);
    return (flags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0 || has_submissions();
  }

  bool has_submissions() const noexcept { return ::io_uring_sq_ready(&ring_) != 0; }

  void enter() noexcept {
    if (faults::next("io_uring_enter") == 0) ::io_uring_submit_and_get_events(&ring_);
  }

  /// Any error here (a signal, a full completion queue, the deadline) is a reason to look again.
  void enter_and_wait(time_point deadline) noexcept {
    if (faults::next("io_uring_enter") == 0) submit_and_wait(deadline);
  }

  /// The flags of IORING_ENTER_* with which the thread waits.
  unsigned waiting_flags() const noexcept { return wait_flags_; }

 private:
  // A ring of two pages, for a user whose locked memory is limited. Source: io_uring_setup(2),
  // ENOMEM.
  static constexpr unsigned least_submissions = 32;
  static constexpr unsigned least_completions = 128;

  [[noreturn]] static void refuse(int error, const char* call) {
    throw std::system_error(error, std::system_category(), call);
  }

  void open(const backend_options& options) {
    constexpr unsigned common = IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
    constexpr unsigned deferral =
        IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG;
    constexpr unsigned cooperation = IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG;
    int error = 0;
    for (const unsigned flags :
         {common | deferral | setup_no_sqarray, common | deferral, common | cooperation}) {
      if ((flags & deferral) == deferral && disabled("defer_taskrun")) continue;
      if ((flags & setup_no_sqarray) != 0 && disabled("no_sqarray")) continue;
      error = set_up(flags, options.submissions, options.completions);
      if (error == ENOMEM) error = set_up(flags, least_submissions, least_completions);
      acts_any_time_ = (flags & deferral) != deferral;
      if (error == 0) return;
      if (error != EINVAL) break;
    }
    refuse(error, "io_uring_setup");
  }

  /// The library's own call, as of liburing 2.3, writes the array that a ring may do without.
  /// Returns: 0 or an errno value.
  int set_up(unsigned flags, unsigned submissions, unsigned completions) noexcept {
    if (const int error = faults::next("io_uring_setup"); error != 0) return error;
    io_uring_params parameters{};
    parameters.flags = flags;
    parameters.cq_entries = completions;
    const long result = ::syscall(SYS_io_uring_setup, submissions, &parameters);
    if (result < 0) return errno;
    const int descriptor = static_cast<int>(result);
    if (const int error = ::io_uring_queue_mmap(descriptor, &parameters, &ring_); error != 0) {
      sys::close(descriptor);
      return -error;
    }
    ring_.features = parameters.features;
    if ((flags & setup_no_sqarray) != 0) return 0;
    for (unsigned i = 0; i < parameters.sq_entries; ++i) ring_.sq.array[i] = i;
    return 0;
  }

  /// Enters the ring once: a filter may allow to open a ring and refuse to enter it, and a kernel
  /// may not know a flag.
  void probe() {
    const time_point present = std::chrono::steady_clock::now();  // motet's clock asks the backend
    ::io_uring_prep_nop(entry());
    int result = submit_and_wait(present);
    if (result == -EINVAL) {
      wait_flags_ = 0;
      result = submit_and_wait(present);
    }
    if (result < 0) refuse(-result, "io_uring_enter");
    io_uring_cqe* entry = nullptr;
    if (::io_uring_peek_cqe(&ring_, &entry) == 0) ::io_uring_cqe_seen(&ring_, entry);
  }

  /// Returns: the number of entries for the kernel to consume.
  unsigned flush() noexcept {
    io_uring_sq& queue = ring_.sq;
    queue.sqe_head = queue.sqe_tail;
    __atomic_store_n(queue.ktail, queue.sqe_tail, __ATOMIC_RELEASE);
    return queue.sqe_tail - __atomic_load_n(queue.khead, __ATOMIC_RELAXED);
  }

  /// Returns: how many entries the kernel has taken, or minus an errno value.
  /// Source: io_uring_enter(2), struct io_uring_getevents_arg.
  int submit_and_wait(time_point deadline) noexcept {
    __kernel_timespec timeout{};
    io_uring_getevents_arg argument{};
    if (deadline != time_point::max()) {
      timeout = span_of(deadline);
      argument.ts = reinterpret_cast<std::uintptr_t>(&timeout);
    }
    const unsigned flags = IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG | wait_flags_ |
                           (registered_ ? IORING_ENTER_REGISTERED_RING : 0U);
    const long result = ::syscall(SYS_io_uring_enter, ring_.enter_ring_fd, flush(), 1, flags,
                                  &argument, sizeof argument);
    return result < 0 ? -errno : static_cast<int>(result);
  }

  /// Returns: the deadline on the kernel's monotonic clock, or what is left until then.
  __kernel_timespec span_of(time_point deadline) const noexcept {
    clock::duration span = std::max(deadline.time_since_epoch(), clock::duration::zero());
    if ((wait_flags_ & enter_absolute_timer) == 0) {
      const time_point present = std::chrono::steady_clock::now();
      span = deadline > present ? deadline - present : clock::duration::zero();
    }
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(span);
    return {whole.count(), (span - whole).count()};
  }

  /// Returns: a bit for each operation that the kernel knows.
  /// Source: io_uring_register(2), IORING_REGISTER_PROBE.
  std::uint64_t ask_for_newer() noexcept {
    constexpr unsigned limit = 64;
    alignas(io_uring_probe)
        std::array<std::byte, sizeof(io_uring_probe) + limit * sizeof(io_uring_probe_op)>
            storage{};
    auto* probe = ::new (storage.data()) io_uring_probe;
    if (disabled("newer_operations") || ::io_uring_register_probe(&ring_, probe, limit) != 0)
      return 0;
    std::uint64_t verbs = 0;
    for (unsigned i = 0; i < std::min<unsigned>(probe->ops_len, limit); ++i) {
      if ((probe->ops[i].flags & IO_URING_OP_SUPPORTED) != 0) verbs |= std::uint64_t{1} << i;
    }
    return verbs;
  }

  io_uring ring_{};
  std::optional<std::uint64_t> newer_;
  owned_descriptor news_{-1};  // for a foreign loop
  bool news_registered_ = false;
  bool abandoned_ = false;
  bool acts_any_time_ = false;
  bool registered_ = false;
  unsigned wait_flags_ = 0;
};

}}}  // namespace motet::MOTET_ABI::detail
