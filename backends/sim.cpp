// SPDX-License-Identifier: MIT
// Virtual time over real descriptors; read this backend first. While a timer is set, descriptors
// are tried and never waited for: when none is ready, the clock jumps to the next deadline. Each
// poll advances the clock by a microsecond, or time would stand still for a program that is always
// busy. While another thread works for a fiber, or might wake the only fibers there are, the clock
// does not jump, but keeps pace with real time.
#include <poll.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <motet/detail/base/list.hpp>
#include <new>
#include <utility>
#include <vector>

#include "base/remote_work.hpp"
#include "base/system_calls.hpp"
#include "factories.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

struct waiting_tag;

/// An operation that waits, in the operation's scratch.
struct waiting : tagged_link<waiting_tag> {
  operation* op = nullptr;
  std::size_t look = 0;  // its index in looks_; 0: it has none
  bool skipped = false;  // by the next look: its descriptor was ready at the last one
  int ready_looks = 0;   // in a row, after which it had to wait all the same
};
static_assert(sizeof(waiting) <= sizeof(operation::scratch));

waiting& waiting_of(operation& op) noexcept {
  return *std::launder(reinterpret_cast<waiting*>(op.scratch));
}

class sim_backend final : public backend {
 public:
  std::string_view name() const noexcept override { return "sim"; }
  bool virtual_time() const noexcept override { return true; }
  time_point now() const noexcept override { return time_; }
  void listen(int wake_descriptor) override { wake_descriptor_ = wake_descriptor; }
  void keep_pace(bool enable) noexcept override { keeps_pace_ = enable; }

  bool submit(operation& op) noexcept override {
    if (attempt(op)) return true;
    auto* entry = ::new (static_cast<void*>(op.scratch)) waiting;
    entry->op = &op;
    waits_.push_back(*entry);
    return false;
  }

  void cancel(operation& op) noexcept override {
    if (op.cancelling || !waiting_of(op).linked()) return;
    op.cancelling = true;
    op.result = -ECANCELED;
    finish(op);
  }

  void poll(time_point deadline, completions& ended_operations) override {
    time_ += std::chrono::microseconds(1);
    try_all();
    if (results_.empty() && !woken() && deadline != time_point::min()) {
      if (deadline == time_point::max()) {
        wait_for_real(nullptr);
        try_all();
      } else if (keeps_pace_ || remote_work::under_way()) {
        wait_until(deadline);
        try_all();
      } else if (deadline > time_) {
        time_ = deadline;
      }
    }
    ended_operations.append(results_);
  }

 private:
  void finish(operation& op) noexcept {
    waiting_of(op).unlink();
    results_.push(op);
  }

  void try_all() noexcept {
    for (waiting* entry = waits_.front(); entry != nullptr;) {
      waiting* next = waits_.next(*entry);
      if (attempt(*entry->op)) finish(*entry->op);
      entry = next;
    }
  }

  bool woken() const noexcept {
    std::uint64_t count = 0;
    return sys::read(wake_descriptor_, &count, sizeof count) > 0;
  }

  /// Waits in real time until the deadline, or until something happens, and sets the clock on by
  /// the time that has passed.
  void wait_until(time_point deadline) noexcept {
    if (deadline <= time_) return;
    const auto remaining = deadline - time_;
    const auto whole = std::chrono::floor<std::chrono::seconds>(remaining);
    const timespec limit{whole.count(), (remaining - whole).count()};
    const auto begin = std::chrono::steady_clock::now();
    wait_for_real(&limit);
    time_ += std::min(remaining, std::chrono::steady_clock::now() - begin);
  }

  /// Waits until a descriptor is ready, or until the limit if there is one.
  void wait_for_real(const timespec* limit) noexcept {
    long pause = shortest_pause;  // operations without a look are tried again soon
    try {
      pause = list_looks();
    } catch (const std::bad_alloc&) {
    }
    const timespec soon{0, pause};
    const bool longer = limit == nullptr || limit->tv_sec > 0 || limit->tv_nsec > pause;
    sys::ppoll(looks_.data(), looks_.size(), longer && pause > 0 ? &soon : limit, nullptr);
    mark_ready();
    woken();
  }

  /// Fills looks_ with the descriptors of the waiting operations. An operation that still waits
  /// although its descriptor was ready the previous time is skipped once.
  /// Returns: when the first skipped operation is to be tried again, in nanoseconds; 0 if none was
  ///          skipped.
  long list_looks() {
    long pause = 0;
    looks_.clear();
    looks_.push_back({wake_descriptor_, POLLIN, 0});
    for (waiting* entry = waits_.front(); entry != nullptr; entry = waits_.next(*entry)) {
      entry->look = 0;
      if (std::exchange(entry->skipped, false)) {
        const long length = shortest_pause << std::min(entry->ready_looks - 1, most_doublings);
        pause = pause == 0 ? length : std::min(pause, length);
      } else {
        looks_.push_back({entry->op->fd, readiness_of(*entry->op), 0});
        entry->look = looks_.size() - 1;
      }
    }
    return pause;
  }

  /// Marks the operations whose descriptors are ready, which are tried next: one that still waits
  /// then was woken spuriously.
  void mark_ready() noexcept {
    for (waiting* entry = waits_.front(); entry != nullptr; entry = waits_.next(*entry)) {
      if (entry->look == 0 || entry->look >= looks_.size()) continue;
      entry->skipped = looks_[entry->look].revents != 0;
      entry->ready_looks = entry->skipped ? entry->ready_looks + 1 : 0;
    }
  }

  static constexpr long shortest_pause = 1'000'000;  // nanoseconds
  static constexpr int most_doublings = 5;

  time_point time_ = std::chrono::steady_clock::now();
  int wake_descriptor_ = -1;
  bool keeps_pace_ = false;
  list<waiting, waiting_tag> waits_;
  completions results_;
  std::vector<pollfd> looks_;
};

}  // namespace

std::unique_ptr<backend> make_sim_backend(const backend_options&) {
  return std::make_unique<sim_backend>();
}

}}}  // namespace motet::MOTET_ABI::detail
