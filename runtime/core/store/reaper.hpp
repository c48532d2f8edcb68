// SPDX-License-Identifier: MIT
// Runs deferred work of polls and switches in a fiber of its own. A destructor of the user's may
// wait, which is impossible during a poll or a switch, and must not delay an unrelated fiber. The
// fiber also calls the handlers for notices that a poll produces.
#pragma once

#include <motet/detail/base/body.hpp>
#include <motet/detail/base/list.hpp>
#include <motet/detail/base/value_slot.hpp>
#include <motet/detail/core/family.hpp>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class thread_state;

class reaper {
 public:
  explicit reaper(thread_state& thread) noexcept : thread_(thread) {}
  reaper(const reaper&) = delete;
  reaper& operator=(const reaper&) = delete;

  /// Leaves a block to which nobody refers.
  [[gnu::noinline]] void reap_later(control_block& dead) noexcept;
  void destroy_later(value_slot&& value) noexcept;
  /// Destroys what has been left, in the running fiber.
  void reap() noexcept;
  /// No other fiber will run: what is left now is destroyed by reap() alone.
  void start_no_more() noexcept { reaping_ = true; }

  /// Starts a fiber that is nobody's child, for the runtime's own purposes; it must end when the
  /// runtime does, or is cancelled.
  /// Throws: std::bad_alloc.
  template <typename Body>
  void spin(Body&& body, const char* description) {
    using stored_callable = std::decay_t<Body>;
    static_assert(std::is_nothrow_constructible_v<stored_callable, Body>);
    control_block& fiber = make(body_kind_of<stored_callable, void>::kind, description);
    ::new (fiber.body) stored_callable(std::forward<Body>(body));
    start(fiber);
  }

  /// The fibers that spin() has started.
  family& fibers() noexcept { return fibers_; }
  /// Called in a forked child.
  void abandon(control_block& caller) noexcept;

 private:
  control_block& make(const body_kind& kind, const char* description);
  void start(control_block& fiber) noexcept;
  void start_reaping() noexcept;

  thread_state& thread_;
  family fibers_;
  list<control_block, fibers_tag> unreferred_;
  std::vector<value_slot> leftovers_;
  bool reaping_ = false;
};

}}}  // namespace motet::MOTET_ABI::detail
