// SPDX-License-Identifier: MIT
// A set of fibers that are over before the group is: what borrows a local is spun in a group that
// is declared after it.
#pragma once

#include <cstddef>
#include <exception>
#include <motet/detail/heart/family.hpp>
#include <motet/detail/heart/handle.hpp>
#include <motet/fiber.hpp>
#include <utility>
#include <vector>

namespace motet { inline namespace MOTET_ABI {

namespace detail {

class race;

/// Room for one more fiber in a group that may have a limit.
class group_room {
 public:
  explicit group_room(group_family& wanted);
  group_room(const group_room&) = delete;
  group_room& operator=(const group_room&) = delete;
  /// If it was not taken the next one gets it.
  ~group_room() {
    if (group_ != nullptr) give_back();
  }
  void taken() noexcept {
    if (group_ != nullptr) --std::exchange(group_, nullptr)->promises;
  }

 private:
  void give_back() noexcept;

  group_family* group_ = nullptr;  // null: it has no limit; may be gone when it is given back
  handle owner_;
};

}  // namespace detail

class group {
 public:
  /// The running fiber owns it, and is the parent of what is spun in it.
  /// Not a switchpoint.
  group();
  /// At most `limit` of its fibers live at once; spin() waits for room.
  /// Not a switchpoint.
  /// Throws: std::invalid_argument for 0.
  explicit group(std::size_t limit);
  group(const group&) = delete;
  group& operator=(const group&) = delete;
  /// Cancels what is left and waits for it. A failure that the owner has not been told of is thrown
  /// at its next switchpoint.
  /// Switchpoint; nothing interrupts it.
  ~group();

  /// Starts a fiber here; as motet::spin() otherwise. `body` may borrow what outlives the group.
  /// Any fiber of the owner's thread may call it; one of the group's own should not wait for room
  /// that it takes up itself.
  /// Switchpoint if the group has a limit; else not a switchpoint.
  /// Throws: as motet::spin(); `cancelled` if the owner is ending; what is pending for this fiber.
  template <typename F>
  auto spin(F&& body, call_site site = call_site::here()) {
    detail::group_room room(family_);
    auto started = detail::spin_in(&family_, nullptr, std::forward<F>(body), site);
    room.taken();
    return started;
  }
  template <typename F>
  auto spin(spin_options how, F&& body, call_site site = call_site::here()) {
    detail::group_room room(family_);
    auto started = detail::spin_in(&family_, &how, std::forward<F>(body), site);
    room.taken();
    return started;
  }

  /// Waits until all but the transient fibers are over. The first failure cancels the rest.
  /// Switchpoint.
  /// Throws: the first failure, unchanged, once all are over; what is pending for this fiber;
  ///         std::logic_error if the running fiber is not the owner.
  void await_all();

  /// Waits until one more of the fibers is over to which somebody has a handle.
  /// Returns: those, one a call, in the order of their ends; empty when only transient fibers are
  ///          left.
  /// Switchpoint.
  /// Throws: the first failure, unchanged, as soon as it is known; otherwise as await_all().
  fiber_ref next();

  /// Returns: what has failed in the last round that had a failure, the first one first; what the
  ///          owner has been told of is among them. A round ends when the group is empty.
  /// Not a switchpoint.
  /// Throws: std::logic_error on another thread than the owner's; std::bad_alloc.
  std::vector<std::exception_ptr> failures() const;

  /// Cancels every fiber that is in it now; more may be spun.
  /// Not a switchpoint.
  /// Throws: std::logic_error on another thread than the owner's.
  void cancel(const char* reason = "its group was cancelled", call_site site = call_site::here());

  /// Returns: how many of its fibers are not over.
  /// Not a switchpoint.
  std::size_t size() const noexcept { return family_.size; }

 private:
  friend class detail::race;
  void check_thread() const;
  void check_owner() const;
  void throw_failure();

  detail::group_family family_;
};

}}  // namespace motet::MOTET_ABI
