// SPDX-License-Identifier: MIT
// Where functions are called, and how a fiber goes there itself and comes back.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <motet/call_site.hpp>
#include <motet/detail/threads/arrival.hpp>
#include <motet/thread_pool.hpp>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

/// Refers to something that calls functions: a thread, a thread_pool, a strand, or anything else
/// with a member `post(f)`, an event loop for example, which is to call a copy of `f` soon, once.
/// A fiber that goes there has left its stack already when `post` is called: nothing interrupts a
/// `post` that waits, and it cannot go anywhere itself.
/// What it refers to must outlive what is asked of it. Any thread may use it.
class executor {
 public:
  template <typename Where>
    requires(!std::is_same_v<std::remove_const_t<Where>, executor> &&
             requires(Where& where, detail::arrival f) { where.post(f); })
  executor(Where& where) noexcept
      : where_(const_cast<void*>(static_cast<const void*>(&where))), kind_(&kind_of<Where>) {}

  /// Has `f`, moved, called there.
  /// Switchpoint if what it refers to makes the caller wait; else not a switchpoint.
  /// Throws: executor_stopped if it takes no more; std::bad_alloc; what its post() throws.
  template <typename F>
  void post(F&& f) const {
    auto held = std::make_shared<std::decay_t<F>>(std::forward<F>(f));
    kind_->post(where_, [held = std::move(held)] { (*held)(); });
  }

 private:
  friend struct detail::executor_access;

  template <typename Where>
  static void post_to(void* where, std::function<void()>&& f) {
    static_cast<Where*>(where)->post(std::move(f));
  }
  template <typename Where>
  static constexpr bool has_limit = requires(const Where& known, const detail::journey& traveller) {
    detail::take_room(known, traveller);
  };
  template <typename Where>
  static bool take_room_in(void* where, const detail::journey& traveller) {
    if constexpr (has_limit<Where>) {
      return detail::take_room(*static_cast<const Where*>(where), traveller);
    } else {
      return false;
    }
  }
  template <typename Where>
  static void send_to(void* where, const detail::arrival& fiber) {
    if constexpr (requires(const Where& known) { detail::give(known, fiber); }) {
      detail::give(*static_cast<const Where*>(where), fiber);
    } else {
      static_cast<Where*>(where)->post(fiber);
    }
  }
  template <typename Where>
  static bool is_here([[maybe_unused]] const void* where) {
    if constexpr (requires(const Where& known) { detail::runs_here(known); }) {
      return detail::runs_here(*static_cast<const Where*>(where));
    } else {
      return false;
    }
  }
  template <typename Where>
  static constexpr detail::executor_kind kind_of{&post_to<Where>, &is_here<Where>,
                                                 has_limit<Where> ? &take_room_in<Where> : nullptr,
                                                 &send_to<Where>};

  void* where_;
  const detail::executor_kind* kind_;
};

/// The executor that calls at once, where it is asked to.
class inline_executor {
 public:
  /// Switchpoint if `f` has one.
  /// Throws: what `f` throws.
  template <typename F>
  void post(F&& f) {
    std::forward<F>(f)();
  }
};

namespace detail {

/// Who asks for it is there already.
inline bool runs_here(const inline_executor&) noexcept {
  return true;
}

}  // namespace detail

/// One worker of a pool, the same for as long as the strand lives: so what runs there excludes each
/// other between switchpoints, and begins in the order in which it came. It costs no thread, and
/// unlike a mutex it is not held across a wait: while one waits, another runs. Any thread may use
/// it; the pool must outlive it.
class strand {
 public:
  /// Not a switchpoint.
  explicit strand(thread_pool& pool) noexcept : pool_(&pool), worker_(pool.next_for_strand()) {}

  /// Has `f`, moved, called by that worker, as a job of the pool.
  /// Switchpoint if the pool has a limit; else not a switchpoint.
  /// Throws: as thread_pool::post().
  template <typename F>
  void post(F&& f, call_site site = call_site::here()) {
    detail::local_list heirlooms = detail::heirlooms_here();
    detail::posted_work<std::decay_t<F>> work(std::in_place, std::forward<F>(f));
    pool_->enter();
    pool_->give_to(pool_->choose(worker_), std::move(work), std::move(heirlooms), site);
  }

 private:
  friend bool detail::runs_here(const strand& where) noexcept;
  friend bool detail::take_room(const strand& where, const detail::journey& traveller);
  friend void detail::give(const strand& where, const detail::arrival& fiber);

  thread_pool* pool_;
  std::size_t worker_;
};

/// The running fiber goes on there. Its deadlines, shields and fiber_locals go along; its children
/// and groups stay where they are. Whoever has a handle to it notices nothing. It ends where it was
/// spun: it goes back there by itself. If it is there already this does nothing.
/// Switchpoint. What interrupts it on the way there is thrown on the thread it has not left; or at
/// home, if it goes on from another thread to which no portal leads back.
/// Throws: executor_stopped, in the same place; std::bad_alloc, stack_unavailable; what `to`'s
///         post() throws; what is pending for this fiber; std::logic_error in a destructor that
///         runs when the fiber's function has been left, in a main fiber that run() has not called,
///         and in an executor's post().
void teleport(executor to);

/// Teleports, and back again at its end, also while an exception is on its way out. Where it came
/// from does not end meanwhile. On the stack of one fiber; the innermost ends first.
class portal {
 public:
  /// Switchpoint.
  /// Throws: as teleport().
  explicit portal(executor to);
  portal(const portal&) = delete;
  portal& operator=(const portal&) = delete;
  /// Switchpoint; nothing interrupts it, and what is pending is thrown at a later one.
  ~portal();

 private:
  detail::station* const origin_;  // null: it was there already
};

/// An object that is only ever touched where it belongs. It is made and destroyed where its owner
/// is.
template <typename T>
class executor_bound {
 public:
  /// Not a switchpoint, unless T's constructor is.
  template <typename... Arguments>
  explicit executor_bound(executor where, Arguments&&... arguments)
      : where_(where), object_(std::forward<Arguments>(arguments)...) {}

  /// Calls `f` with the object, there, by a portal.
  /// Returns: what `f` returned, made there.
  /// Switchpoint.
  /// Throws: as portal(); what `f` throws.
  template <typename F>
  auto call(F&& f) -> std::invoke_result_t<F, T&> {
    static_assert(!std::is_reference_v<std::invoke_result_t<F, T&>>,
                  "return a value, not a reference: the object is touched where it belongs");
    const portal there(where_);
    return std::forward<F>(f)(object_);
  }

 private:
  executor where_;
  T object_;
};

}}  // namespace motet::MOTET_ABI
