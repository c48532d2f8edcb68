// SPDX-License-Identifier: MIT
// A latch opens when it has been counted down to 0, and stays open.
#pragma once

#include <cstddef>
#include <motet/detail/sync/wait_list.hpp>

namespace motet { inline namespace MOTET_ABI {

namespace detail {

[[noreturn]] void refuse_latch_count();

template <typename Sharing>
class basic_latch {
 public:
  /// Opens after `count` steps; 0 makes an open latch.
  /// Throws: std::invalid_argument for a negative count.
  explicit basic_latch(std::ptrdiff_t count) : remaining_(count) {
    if (count < 0) refuse_latch_count();
  }
  basic_latch(const basic_latch&) = delete;
  basic_latch& operator=(const basic_latch&) = delete;
  /// Not a switchpoint. Waits that are still open throw std::logic_error.
  ~basic_latch() = default;

  /// Counts down by `steps`; the last step opens the latch and ends every wait, in order.
  /// Not a switchpoint.
  /// Throws: std::invalid_argument, without effect, if `steps` is negative or more than are left.
  void count_down(std::ptrdiff_t steps = 1) {
    bool refused = false;
    waiters_.release_if([&] {
      refused = steps < 0 || steps > remaining_;
      if (!refused) remaining_ -= steps;
      return remaining_ == 0;
    });
    if (refused) refuse_latch_count();
  }

  /// Waits until the latch is open.
  /// Switchpoint; switches only if it must wait.
  /// Throws: a pending interruption; std::logic_error if the latch is destroyed meanwhile.
  void wait() {
    waiters_.wait_unless([this] { return is_ready(); }, "wait for a latch", this);
  }

  /// Returns: whether the latch is open.
  /// Not a switchpoint.
  bool is_open() const {
    return waiters_.look([this] { return is_ready(); });
  }

 private:
  template <typename>
  friend struct basic_state_case;
  static constexpr bool shared = Sharing::shared;
  bool is_ready() const noexcept { return remaining_ == 0; }

  mutable wait_queue<Sharing> waiters_;
  std::ptrdiff_t remaining_;
};

}  // namespace detail

/// Between fibers and threads.
using latch = detail::basic_latch<detail::shared_policy>;

namespace local {
/// Between the fibers of one thread.
using latch = detail::basic_latch<detail::local_policy>;
}  // namespace local

}}  // namespace motet::MOTET_ABI
