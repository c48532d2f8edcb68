// SPDX-License-Identifier: MIT
// The way from spin() to a runnable fiber, in two steps: what may fail is done before the callable
// is moved.
#pragma once

#include <motet/base/call_site.hpp>
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
///          main fiber; null, meaning the running fiber's own, if that main fiber has begun to end.
/// Throws: as the first use of motet on a thread does.
family* children_of_main();

/// A fiber that has been created but not started; releases everything if it never is.
class fiber_start {
 public:
  /// `options` may be null for the defaults, and `parents` for a child of the running fiber.
  fiber_start(family* parents, spin_options* options, const body_kind& kind, call_site site)
      : block_(&make(parents, options, kind, site)) {}
  fiber_start(const fiber_start&) = delete;
  fiber_start& operator=(const fiber_start&) = delete;
  ~fiber_start() {
    if (block_ != nullptr) [[unlikely]]
      unmake();
  }

  /// Returns: the address at which the callable is to be constructed.
  void* body() const noexcept { return block_->body; }
  /// Called after the callable was moved to body(), which may have waited: the family may have
  /// ended meanwhile, or this may be a forked process.
  /// Throws: `cancelled` if fibers can no longer be spawned there; the callable at body() has been
  ///         destroyed then.
  void look_again();
  /// Makes it runnable, and a child.
  handle start() noexcept {
    control_block& fiber = *taken(block_);
    join_family(fiber, *fiber.belongs_to);
    fiber.home->start(fiber);
    return handle(&fiber);
  }

 private:
  static control_block& make(family* parents, spin_options* options, const body_kind& kind,
                             call_site site);
  void unmake() noexcept;

  control_block* block_;
};

}  // namespace detail

}}  // namespace motet::MOTET_ABI
