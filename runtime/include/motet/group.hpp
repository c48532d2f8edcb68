// SPDX-License-Identifier: MIT
// A set of fibers that are over before the group is: what borrows a local is spun in a group that
// is declared after it.
#pragma once

#include <cstddef>
#include <motet/detail/family.hpp>
#include <motet/fiber.hpp>
#include <utility>

namespace motet::inline MOTET_ABI {

class group {
 public:
  /// The running fiber owns it, and is the parent of what is spun in it.
  /// Not a switchpoint.
  group();
  group(const group&) = delete;
  group& operator=(const group&) = delete;
  /// Cancels what is left and waits for it. A failure that the owner has not been told of is thrown
  /// at its next switchpoint.
  /// Switchpoint; nothing interrupts it.
  ~group();

  /// Starts a fiber here; as motet::spin() otherwise. `body` may borrow what outlives the group.
  /// Not a switchpoint.
  /// Throws: as motet::spin(); `cancelled` if the owner is ending.
  template <typename F>
  auto spin(F&& body, call_site site = call_site::here()) {
    check_thread();
    return detail::spin_in(&family_, nullptr, std::forward<F>(body), site);
  }
  template <typename F>
  auto spin(spin_options how, F&& body, call_site site = call_site::here()) {
    check_thread();
    return detail::spin_in(&family_, &how, std::forward<F>(body), site);
  }

  /// Waits until all but the transient fibers are over. The first failure cancels the rest.
  /// Switchpoint.
  /// Throws: the first failure, unchanged, once all are over; what is pending for this fiber;
  ///         std::logic_error if the running fiber is not the owner.
  void await_all();

  /// Cancels every fiber that is in it now; more may be spun.
  /// Not a switchpoint.
  void cancel(const char* reason = "its group was cancelled");

  /// Returns: how many of its fibers are not over.
  /// Not a switchpoint.
  std::size_t size() const noexcept { return family_.size; }

 private:
  /// Throws: std::logic_error on another thread than the owner's.
  void check_thread() const;

  detail::family family_;
};

}  // namespace motet::inline MOTET_ABI

// await_all(), await_any(), first_value()
#include <motet/await.hpp>
