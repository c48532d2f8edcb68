// SPDX-License-Identifier: MIT
// A reference to an executor of whatever type.
#pragma once

#include <functional>
#include <memory>
#include <motet/detail/threads/arrival.hpp>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

/// Refers to an object that calls functions: a thread, a thread_pool, a strand, the runtime that
/// here() was called in, or any other object with a member `post(f)`, an event loop for example,
/// which is to call a copy of `f` soon, once. When a fiber goes to an executor, it has left its
/// stack before `post` is called: nothing interrupts a `post` that waits, and `post` cannot
/// teleport. The object must live until all that was posted to it has been called or destroyed. Any
/// thread may use an executor.
class executor {
 public:
  template <typename Where>
    requires(!std::is_same_v<std::remove_const_t<Where>, executor> &&
             requires(Where& target, detail::arrival f) { target.post(f); })
  executor(Where& target) noexcept
      : target_(const_cast<void*>(static_cast<const void*>(&target))), kind_(&kind_of<Where>) {}

  /// Passes `f`, moved, to the object's post().
  /// Switchpoint if that post() makes the caller wait; else not a switchpoint.
  /// Throws: executor_stopped if it accepts no more functions; std::bad_alloc; what post() throws.
  template <typename F>
  void post(F&& f) const {
    auto function = std::make_shared<std::decay_t<F>>(std::forward<F>(f));
    kind_->post(target_, [function = std::move(function)] { (*function)(); });
  }

 private:
  friend struct detail::executor_access;
  friend executor here();
  executor(std::shared_ptr<detail::job_inbox> inbox, const detail::executor_kind& kind) noexcept
      : target_(inbox.get()), kind_(&kind), inbox_(std::move(inbox)) {}

  template <typename Where>
  static void post_to(void* target, std::function<void()>&& f) {
    static_cast<Where*>(target)->post(std::move(f));
  }
  template <typename Where>
  static constexpr bool has_limit =
      requires(const Where& target, const detail::journey& traveller) {
        detail::reserve_slot(target, traveller);
      };
  template <typename Where>
  static bool reserve_slot_in(void* target, const detail::journey& traveller) {
    if constexpr (has_limit<Where>) {
      return detail::reserve_slot(*static_cast<const Where*>(target), traveller);
    } else {
      return false;
    }
  }
  template <typename Where>
  static void send_to(void* target, const detail::arrival& fiber) {
    if constexpr (requires(const Where& where) { detail::give(where, fiber); }) {
      detail::give(*static_cast<const Where*>(target), fiber);
    } else {
      static_cast<Where*>(target)->post(fiber);
    }
  }
  template <typename Where>
  static bool is_here([[maybe_unused]] const void* target) {
    if constexpr (requires(const Where& where) { detail::runs_here(where); }) {
      return detail::runs_here(*static_cast<const Where*>(target));
    } else {
      return false;
    }
  }
  template <typename Where>
  static constexpr detail::executor_kind kind_of{
      &post_to<Where>, &is_here<Where>, has_limit<Where> ? &reserve_slot_in<Where> : nullptr,
      &send_to<Where>};

  void* target_;
  const detail::executor_kind* kind_;
  std::shared_ptr<detail::job_inbox> inbox_;  // of a runtime
};

}}  // namespace motet::MOTET_ABI
