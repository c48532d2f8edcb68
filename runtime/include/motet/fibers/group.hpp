// SPDX-License-Identifier: MIT
// A set of fibers that end before the group does: a fiber that borrows a local variable must be
// spun in a group that is declared after the variable.
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <motet/detail/base/taken.hpp>
#include <motet/detail/base/timespan.hpp>
#include <motet/detail/core/family.hpp>
#include <motet/detail/core/handle.hpp>
#include <motet/detail/fibers/group_start.hpp>
#include <motet/fibers/fiber.hpp>
#include <utility>
#include <vector>

namespace motet { inline namespace MOTET_ABI {

namespace detail {

class race;

/// A slot for one more fiber in a group that may have a limit.
class group_slot {
 public:
  explicit group_slot(group_family& group);
  group_slot(const group_slot&) = delete;
  group_slot& operator=(const group_slot&) = delete;
  /// Unless a fiber has taken the slot, the next caller of group::spin() gets it.
  ~group_slot() {
    if (group_ != nullptr) give_back();
  }
  void commit() noexcept {
    if (group_ != nullptr) --detail::taken(group_)->promises;
  }

 private:
  void give_back() noexcept;

  group_family* group_ = nullptr;  // null: no limit. May be destroyed before ~group_slot()
  handle owner_;
};

}  // namespace detail

class group {
 public:
  /// The running fiber owns the group, and is the parent of the fibers that are spun in it.
  /// Not a switchpoint.
  group();
  /// At most `limit` of the group's fibers live at once; spin() waits for a slot.
  /// Not a switchpoint.
  /// Throws: std::invalid_argument for 0.
  explicit group(std::size_t limit);
  group(const group&) = delete;
  group& operator=(const group&) = delete;
  /// Cancels the fibers that are left and waits for their end. A failure that has not reached the
  /// owner is thrown at the owner's next switchpoint.
  /// Switchpoint; nothing interrupts it.
  ~group();

  /// Spawns a fiber in this group; otherwise as motet::spin(). `body` may borrow objects that
  /// outlive the group. Any fiber of the owner's thread may call this; but a fiber of a group with
  /// a limit should not call it, because it would wait for a slot while it occupies one.
  /// Switchpoint if the group has a limit; else not a switchpoint.
  /// Throws: as motet::spin(); `cancelled` if the owner is ending; a pending interruption.
  template <typename F>
  auto spin(F&& body, call_site site = call_site::here()) {
    detail::group_slot slot(family_);
    auto fiber = detail::spin_in(&family_, nullptr, std::forward<F>(body), site);
    slot.commit();
    return fiber;
  }
  template <typename F>
  auto spin(spin_options options, F&& body, call_site site = call_site::here()) {
    detail::group_slot slot(family_);
    auto fiber = detail::spin_in(&family_, &options, std::forward<F>(body), site);
    slot.commit();
    return fiber;
  }

  /// Spawns a fiber that calls `body(promise<T>&)`, and waits until `body` has set the promise, for
  /// example when its server is listening. The fiber then continues in the background. If this call
  /// is interrupted, it cancels the fiber. Needs motet/sync/future.hpp.
  /// Returns: the value of the promise.
  /// Switchpoint.
  /// Throws: what `body` throws before it sets the promise; fiber_cancelled if the fiber is
  ///         cancelled earlier; std::logic_error if `body` does not set it; otherwise as spin().
  template <typename T = void, typename F>
  T start(F&& body, call_site site = call_site::here());

  /// Waits until all but the transient fibers have ended. The first failure cancels the rest.
  /// Switchpoint.
  /// Throws: the first failure, unchanged, once all have ended; a pending interruption;
  ///         std::logic_error if the running fiber is not the owner.
  void await_all();

  /// Waits until one more of the fibers has ended. Only fibers with a handle count.
  /// Returns: the fibers, one per call, in the order in which they ended; an empty handle when only
  ///          transient fibers are left.
  /// Switchpoint.
  /// Throws: the first failure, unchanged, as soon as it occurs; otherwise as await_all().
  fiber_ref next();

  /// Returns: the exceptions of the last round that had a failure, in order, including those that
  ///          have reached the owner. A round ends when the group is empty.
  /// Not a switchpoint.
  /// Throws: std::logic_error on a thread other than the owner's; std::bad_alloc.
  std::vector<std::exception_ptr> failures() const;

  /// Cancels all fibers that are in the group now; more may be spawned.
  /// Not a switchpoint.
  /// Throws: std::logic_error on a thread other than the owner's.
  void cancel(const char* reason = "its group was cancelled", call_site site = call_site::here());

  /// Terminates every fiber that is in the group now, as fiber_ref::terminate() does.
  /// Not a switchpoint: to wait for the end, call await_all().
  /// Throws: std::logic_error on a thread other than the owner's.
  void terminate(detail::timespan grace = std::chrono::seconds(5),
                 call_site site = call_site::here());

  /// Returns: the number of the group's fibers that have not ended.
  /// Not a switchpoint.
  std::size_t size() const noexcept { return family_.size; }

 private:
  friend class detail::race;
  void check_thread() const;
  void check_owner() const;
  void throw_failure();

  detail::group_family family_;
};

template <typename T, typename F>
T group::start(F&& body, call_site site) {
  promise<T> ready;
  future<T> report = ready.get_future();
  using starting = detail::starting<T, std::decay_t<F>>;
  const fiber_ref child = spin(starting{std::forward<F>(body), std::move(ready)}, site);
  try {
    report.wait();
  } catch (...) {
    child.cancel("its start was interrupted", site);
    throw;
  }
  try {
    return detail::ready_future::take(report);
  } catch (...) {
    detail::rethrow_for_start_of(child);
  }
}

}}  // namespace motet::MOTET_ABI
