// SPDX-License-Identifier: MIT
// A ring of io_uring: how it is opened, entered and given up. The meaning of its entries is the
// business of uring_backend.
#pragma once

#include <liburing.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <motet/backend.hpp>
#include <new>
#include <optional>
#include <system_error>

#include "words/disabled.hpp"
#include "words/faults.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

class kernel_ring {
 public:
  using time_point = clock::time_point;

  /// Throws: std::system_error if the kernel, or a filter, refuses to open or to enter the ring.
  explicit kernel_ring(const backend_options& options) {
    open(options);
    try {
      ::io_uring_ring_dontfork(&ring_);
      if (!disabled("registered_ring"))
        ::io_uring_register_ring_fd(&ring_);  // saves a look-up at each enter; may be refused
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
    ::close(ring_.ring_fd);
    abandoned_ = true;
  }

  io_uring* get() noexcept { return &ring_; }
  /// Returns: null if the submission queue is full.
  io_uring_sqe* entry() noexcept { return ::io_uring_get_sqe(&ring_); }
  /// Whether the kernel goes on with operations in any system call of the thread: so it is without
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
    return (flags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0 ||
           ::io_uring_sq_ready(&ring_) != 0;
  }

  void enter() noexcept {
    if (faults::next("io_uring_enter") == 0) ::io_uring_submit_and_get_events(&ring_);
  }

  /// Any error here (a signal, a full completion queue, the deadline) is a reason to look again.
  void enter_and_wait(time_point deadline) noexcept {
    if (faults::next("io_uring_enter") != 0) return;
    io_uring_cqe* first = nullptr;
    if (deadline == time_point::max()) {
      ::io_uring_submit_and_wait(&ring_, 1);
      return;
    }
    const time_point present = std::chrono::steady_clock::now();
    const auto left = deadline > present ? deadline - present : clock::duration::zero();
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(left);
    __kernel_timespec span{whole.count(), (left - whole).count()};
    ::io_uring_submit_and_wait_timeout(&ring_, &first, 1, &span, nullptr);
  }

 private:
  [[noreturn]] static void refuse(int error, const char* call) {
    throw std::system_error(error, std::system_category(), call);
  }

  void open(const backend_options& options) {
    constexpr unsigned common = IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
    constexpr unsigned deferring =
        IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG;
    constexpr unsigned cooperating = IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG;
    int error = 0;
    for (const unsigned flags : {common | deferring, common | cooperating}) {
      if ((flags & deferring) == deferring && disabled("defer_taskrun")) continue;
      io_uring_params parameters{};
      parameters.flags = flags;
      parameters.cq_entries = options.completions;
      error = faults::next("io_uring_setup");
      if (error == 0) {
        error = -::io_uring_queue_init_params(options.submissions, &ring_, &parameters);
      }
      acts_any_time_ = (flags & deferring) != deferring;
      if (error == 0) return;
      if (error != EINVAL) break;
    }
    refuse(error, "io_uring_setup");
  }

  /// Enters the ring once: a filter may allow to open a ring and refuse to enter it.
  void probe() {
    ::io_uring_prep_nop(entry());
    const int entered = ::io_uring_submit_and_wait(&ring_, 1);
    if (entered < 0) refuse(-entered, "io_uring_enter");
    io_uring_cqe* done = nullptr;
    if (::io_uring_peek_cqe(&ring_, &done) == 0) ::io_uring_cqe_seen(&ring_, done);
  }

  /// Returns: a bit for each operation that the kernel knows.
  /// Source: io_uring_register(2), IORING_REGISTER_PROBE.
  std::uint64_t ask_for_newer() noexcept {
    constexpr unsigned most = 64;
    alignas(io_uring_probe)
        std::array<std::byte, sizeof(io_uring_probe) + most * sizeof(io_uring_probe_op)>
            room{};
    auto* found = ::new (room.data()) io_uring_probe;
    if (disabled("newer_operations") || ::io_uring_register_probe(&ring_, found, most) != 0)
      return 0;
    std::uint64_t known = 0;
    for (unsigned i = 0; i < std::min<unsigned>(found->ops_len, most); ++i) {
      if ((found->ops[i].flags & IO_URING_OP_SUPPORTED) != 0) known |= std::uint64_t{1} << i;
    }
    return known;
  }

  io_uring ring_{};
  std::optional<std::uint64_t> newer_;
  bool abandoned_ = false;
  bool acts_any_time_ = false;
};

}}}  // namespace motet::MOTET_ABI::detail
