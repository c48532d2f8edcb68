// SPDX-License-Identifier: MIT
// A thread with fibers of its own, to which other threads give work.
#pragma once

#include <memory>
#include <motet/detail/core/inherited_locals.hpp>
#include <motet/detail/core/job.hpp>
#include <motet/detail/core/job_slot.hpp>
#include <motet/fibers/fiber.hpp>
#include <motet/runtime/options.hpp>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

class thread;

namespace detail {

/// The state that a thread object and its thread share.
struct thread_link;

/// Returns: the options of this thread's runtime, or the defaults if it has none.
options options_here();
/// Throws: executor_stopped if the thread takes no more jobs.
void deposit(thread_link& target, job_slot&& item);
bool runs_here(const thread_link& link) noexcept;
class arrival;
bool runs_here(const thread& target);
void give(const thread& target, const arrival& fiber);
handle spin_there(const std::shared_ptr<thread_link>& target, remote_job* work);
handle call_there(const std::shared_ptr<thread_link>& target, remote_job& work);

}  // namespace detail

/// Owns a thread whose function is a main fiber. Move-only. Any thread may call its functions; on a
/// moved-from `thread`, each of them throws std::logic_error.
class thread {
 public:
  /// Starts a thread whose main fiber calls `body`, moved into it. Once `body` has returned or
  /// thrown, all fibers of the thread are cancelled and awaited, before its thread-locals are
  /// destroyed. Its options are `settings`, or those of the starting thread.
  /// Switchpoint: waits until the thread has begun; nothing interrupts it. On a thread that has no
  /// runtime it blocks.
  /// Throws: std::system_error if no thread can be created; as run() for `settings`.
  template <typename F>
    requires std::is_invocable_v<std::decay_t<F>&>
  explicit thread(F&& body) : thread(detail::options_here(), std::forward<F>(body)) {}
  template <typename F>
    requires std::is_invocable_v<std::decay_t<F>&>
  thread(const options& settings, F&& body)
      : thread(settings, detail::inherited_here(),
               detail::job_slot::holding(std::forward<F>(body), {})) {}

  thread(thread&&) noexcept = default;
  thread& operator=(thread&& other) noexcept {
    thread old(std::move(other));
    link_.swap(old.link_);
    return *this;
  }
  /// Cancels the main fiber and waits for the thread's end. A failure that no await() has thrown
  /// goes to on_unhandled. Called on the thread itself, it detaches the thread, which runs on.
  /// Switchpoint; nothing interrupts it.
  ~thread();

  /// Waits until the main fiber and all other fibers of the thread have ended.
  /// Switchpoint; on a thread that has no runtime it blocks the thread.
  /// Throws: the exception the main fiber ended by, or else the first failure of the thread that
  ///         has reached no fiber; fiber_cancelled if the main fiber was cancelled;
  ///         a pending interruption.
  void await() const;

  /// Asks the main fiber to end: as fiber_ref::cancel().
  /// Not a switchpoint.
  cancel_result cancel(const char* reason = "its thread was cancelled",
                       call_site site = call_site::here()) const;

  /// Spawns a fiber on that thread that calls `body`, moved into it. It is a child of the running
  /// fiber: a failure that no fiber awaits is thrown in the parent, and the child ends before its
  /// parent does. If the calling thread has no runtime, it is a child of the other thread's main
  /// fiber.
  /// Returns: the handle, which may be dropped.
  /// Switchpoint: waits until that thread has made the fiber; blocks on a thread without a runtime.
  /// Throws: executor_stopped if that thread's function has ended; as spin(); a pending
  ///         interruption, and then `body` does not run.
  template <typename F>
  auto spin(F&& body, call_site site = call_site::here()) {
    using result = detail::result_of_body<F>;
    static_assert(!std::is_reference_v<result>, "return a pointer or a value, not a reference");
    if (detail::runs_here(*link())) return motet::spin(std::forward<F>(body), site);
    auto* work = new detail::spun<std::decay_t<F>, result>(std::forward<F>(body), site);
    return fiber<result>(detail::spin_there(link_, work));
  }

  /// Posts `f`, moved, to that thread, which calls it on its own fiber, a child of the main fiber.
  /// Functions posted by one thread start in the order of the calls. Those that have not started
  /// when the thread's own function ends are destroyed.
  /// Not a switchpoint.
  /// Throws: executor_stopped when spin() would; std::bad_alloc.
  template <typename F>
  void post(F&& f, call_site site = call_site::here()) {
    detail::local_list inherited_locals = detail::inherited_here();
    detail::deposit_with(
        std::move(inherited_locals), detail::job_slot::holding(std::forward<F>(f), site),
        [&](detail::job_slot&& item) { detail::deposit(*link(), std::move(item)); });
  }

  /// Calls `f` on that thread, on a fiber of its own, and waits until that fiber has ended; so `f`
  /// may borrow. An interruption cancels the remote fiber, and is thrown when that has ended.
  /// Returns: what `f` returned.
  /// Switchpoint; on a thread that has no runtime it blocks the thread.
  /// Throws: what `f` throws; fiber_cancelled if its fiber was cancelled on that thread;
  ///         executor_stopped when spin() would; a pending interruption.
  template <typename F>
  auto call(F&& f, call_site site = call_site::here()) -> detail::result_of_body<F> {
    using result = detail::result_of_body<F>;
    static_assert(!std::is_reference_v<result>, "return a pointer or a value, not a reference");
    detail::called<std::remove_reference_t<F>, result> work(f, site);
    const detail::handle completion = detail::call_there(link(), work);
    if constexpr (!std::is_void_v<result>) {
      return std::move(*static_cast<result*>(detail::take_result_of(*completion.get())));
    }
  }

 private:
  friend class thread_pool;
  friend bool detail::runs_here(const thread& target);
  friend void detail::give(const thread& target, const detail::arrival& fiber);
  thread(const options& settings, detail::local_list&& inherited_locals, detail::job_slot&& body);
  /// Waits for the end of the main fiber, even if it ends by an exception.
  void await_main() const;
  /// Waits until nothing of the thread's runtime is left; nothing interrupts this wait.
  void await_over() const noexcept;
  const std::shared_ptr<detail::thread_link>& link() const;

  std::shared_ptr<detail::thread_link> link_;
};

}}  // namespace motet::MOTET_ABI
