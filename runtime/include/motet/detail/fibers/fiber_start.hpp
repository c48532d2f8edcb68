// SPDX-License-Identifier: MIT
// The way from spin() to a runnable fiber, in two steps: what may fail is done before the callable
// is moved.
#pragma once

#include <motet/call_site.hpp>
#include <motet/detail/base/body.hpp>
#include <motet/detail/base/taken.hpp>
#include <motet/detail/core/control_block.hpp>
#include <motet/detail/core/family.hpp>
#include <motet/detail/core/handle.hpp>
#include <motet/detail/core/switchpoint.hpp>

namespace motet { inline namespace MOTET_ABI {

struct spin_options;

namespace detail {

/// Returns: the family for fibers that may outlive the running one: the children of its thread's
///          main fiber; null, for the running fiber's own, if that has begun to end.
/// Throws: as the first use of motet on a thread does.
family* children_of_main();

/// A fiber that has been made but not started; gives everything back if it never is.
class fiber_start {
 public:
  /// `how` may be null: nothing special; so may `parents`: the running fiber is the parent.
  fiber_start(family* parents, spin_options* how, const body_kind& kind, call_site site)
      : block_(&make(parents, how, kind, site)) {}
  fiber_start(const fiber_start&) = delete;
  fiber_start& operator=(const fiber_start&) = delete;
  ~fiber_start() {
    if (block_ != nullptr) [[unlikely]]
      unmake();
  }

  /// Returns: where the callable is to be constructed.
  void* body() const noexcept { return block_->body; }
  /// For what may have waited while it was moved to body(): the family may have ended meanwhile,
  /// and the process may be a forked one.
  /// Throws: `cancelled` if nothing can be spun there now; what is at body() has been destroyed
  ///         then.
  void look_again();
  /// Makes it runnable, and a child.
  handle start() noexcept {
    control_block& fiber = *taken(block_);
    join_family(fiber, *fiber.belongs_to);
    fiber.home->start(fiber);
    return handle(&fiber);
  }

 private:
  static control_block& make(family* parents, spin_options* how, const body_kind& kind,
                             call_site site);
  void unmake() noexcept;

  control_block* block_;
};

}  // namespace detail

}}  // namespace motet::MOTET_ABI
