// SPDX-License-Identifier: MIT
// Executors, which call functions, and how a fiber moves itself to an executor and back.
#pragma once

#include <cstddef>
#include <motet/base/call_site.hpp>
#include <motet/threads/executor.hpp>  // class executor
#include <motet/threads/thread_pool.hpp>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

/// The executor that calls each function at once, on the calling fiber.
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

/// Every fiber is already where an inline_executor calls functions.
inline bool runs_here(const inline_executor&) noexcept {
  return true;
}

}  // namespace detail

/// Returns: an executor that calls each function on this thread, on its own fiber, which is a
///          child of the main fiber. So any thread can reach any runtime. As long as copies of
///          the executor exist, the runtime waits rather than throw `deadlock`. When the runtime
///          ends, functions that have not started are destroyed, and post() throws
///          executor_stopped.
/// Not a switchpoint.
/// Throws: executor_stopped if the runtime is ending; std::logic_error on a foreign thread;
///         std::bad_alloc; as the first use of motet on a thread does.
executor here();

/// One worker of a pool, the same for as long as the strand lives: so the functions posted to a
/// strand begin in the order in which they came, and between switchpoints no two of them run at
/// once. A strand costs no thread, and unlike a mutex it is not held across a wait: while one
/// function waits, another runs. Any thread may use a strand; the pool must outlive it.
class strand {
 public:
  /// Not a switchpoint.
  explicit strand(thread_pool& pool) noexcept;

  /// Runs `f`, moved, as a job of the pool, on the strand's worker.
  /// Switchpoint if the pool has a limit; else not a switchpoint.
  /// Throws: as thread_pool::post().
  template <typename F>
  void post(F&& f, call_site site = call_site::here()) {
    detail::local_list inherited_locals = detail::inherited_here();
    pool_->give(detail::posted_job<std::decay_t<F>>(std::in_place, std::forward<F>(f)),
                std::move(inherited_locals), site, worker_);
  }

 private:
  friend bool detail::runs_here(const strand& target) noexcept;
  friend bool detail::reserve_slot(const strand& target, const detail::journey& traveller);
  friend void detail::give(const strand& target, const detail::arrival& fiber);

  thread_pool* pool_;
  std::size_t worker_;
};

/// Moves the running fiber into a function that `target` calls. Its deadlines, shields and
/// fiber_locals move along; its children and groups stay where they are. Its handles stay valid and
/// work as before. When its body ends, the fiber returns to the thread that spun it, and ends
/// there. No effect if the fiber runs at `target` already.
/// Switchpoint. An interruption on the way is thrown on the thread that the fiber was leaving; if
/// that is not its home, and no portal leads back to it, then at home.
/// Throws: executor_stopped, on the same thread as an interruption; std::bad_alloc,
///         stack_unavailable; what `target`'s post() throws; a pending interruption;
///         std::logic_error in a destructor that runs after the fiber's function has ended, in a
///         main fiber outside of run(), and in an executor's post().
void teleport(executor target);

/// Teleports its fiber, and teleports it back when the portal is destroyed, even while an exception
/// unwinds the stack. The thread that the fiber came from does not end meanwhile. A local variable
/// of one fiber; portals nest, and the innermost is destroyed first.
class portal {
 public:
  /// Switchpoint.
  /// Throws: as teleport().
  explicit portal(executor target);
  portal(const portal&) = delete;
  portal& operator=(const portal&) = delete;
  /// Switchpoint; nothing interrupts it, and a pending interruption is thrown at a later
  /// switchpoint.
  ~portal();

 private:
  detail::residence* const origin_;  // null: the fiber was at the executor already
};

/// An object that is accessed only on its executor. The thread that makes and destroys the
/// executor_bound also makes and destroys the object.
template <typename T>
class executor_bound {
 public:
  /// Not a switchpoint, unless T's constructor is.
  template <typename... Arguments>
  explicit executor_bound(executor target, Arguments&&... arguments)
      : target_(std::move(target)), object_(std::forward<Arguments>(arguments)...) {}

  /// Enters the executor through a portal, and calls `f` with the object there.
  /// Returns: what `f` returned; the value is constructed on the executor.
  /// Switchpoint.
  /// Throws: as portal(); what `f` throws.
  template <typename F>
  auto call(F&& f) -> std::invoke_result_t<F, T&> {
    static_assert(!std::is_reference_v<std::invoke_result_t<F, T&>>,
                  "return a value, not a reference: the object is touched where it belongs");
    const portal visit(target_);
    return std::forward<F>(f)(object_);
  }

 private:
  executor target_;
  T object_;
};

}}  // namespace motet::MOTET_ABI
