// SPDX-License-Identifier: MIT
// Fibers: starting them, giving way, waiting for a value, and handles to them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <motet/base/call_site.hpp>
#include <motet/base/clock.hpp>
#include <motet/base/errors.hpp>
#include <motet/detail/base/timespan.hpp>
#include <motet/detail/base/value_slot.hpp>
#include <motet/detail/core/cold_part.hpp>
#include <motet/detail/core/token.hpp>
#include <motet/detail/fibers/await_fiber.hpp>
#include <motet/detail/fibers/bad_body.hpp>
#include <motet/detail/fibers/fiber_start.hpp>
#include <motet/fibers/fiber_state.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace motet { inline namespace MOTET_ABI {

class fiber_ref;
class thread;

namespace detail {

class end_case;
class race;
control_block& block_of(const fiber_ref& fiber);
[[noreturn]] void refuse_empty_handle();

}  // namespace detail

/// A handle to a fiber. Copyable; may be used on any thread, and after the fiber or its thread has
/// ended. An empty handle refers to no fiber; calling anything but operator bool on it is a
/// std::logic_error.
class fiber_ref {
 public:
  fiber_ref() noexcept = default;

  /// Not a switchpoint.
  explicit operator bool() const noexcept { return block_.get() != nullptr; }
  friend bool operator==(const fiber_ref& a, const fiber_ref& b) noexcept {
    return a.block_.get() == b.block_.get();
  }

  /// Returns: a number that is unique in this process. Not a switchpoint.
  std::uint64_t id() const;
  /// Returns: the name that the fiber was spun with, or was given last. Not a switchpoint.
  std::string name() const;
  /// Renames a fiber that is not dead, or removes its name. Not a switchpoint.
  /// Throws: std::logic_error on a thread other than the fiber's home; std::bad_alloc.
  void set_name(std::string name) const;
  /// Returns: the fiber's state; from another thread a snapshot, but `dead` is final.
  /// Not a switchpoint.
  fiber_state state() const;
  /// Returns: the fiber that spun this one, or the owner of its group; empty for a main fiber.
  /// Not a switchpoint.
  fiber_ref parent() const;
  /// Returns: the fiber's children that are not dead, oldest first, those in its groups included.
  /// Not a switchpoint.
  /// Throws: std::logic_error on a thread other than the fiber's home.
  std::vector<fiber_ref> children() const;
  /// Returns: its home thread, even while it is on another one. Not a switchpoint.
  std::thread::id home() const;
  /// Returns: when the fiber was spun, accurate to the time between two polls of its thread.
  /// Not a switchpoint.
  clock::time_point spun_at() const;

  /// Gives the fiber a token for its next suspend(), or for the suspend() that it waits in. Of
  /// several tokens the last one counts.
  /// Returns: false if the fiber's body has been left (from another thread: if the fiber is dead).
  /// Not a switchpoint.
  /// Throws: std::logic_error if it is the running fiber; std::bad_alloc for a value of more than
  ///         32 bytes, before anything has happened.
  bool schedule() const { return schedule(detail::nothing{}); }
  template <typename T>
  bool schedule(T value) const {
    return schedule_slot(detail::value_slot::holding<T>(std::move(value)));
  }

  /// Throws `error` at the switchpoint the fiber waits at, or else at its next switchpoint; a fiber
  /// that has not started ends with `error`. If the body reaches no further switchpoint, its return
  /// value stands, and options.on_unhandled of its thread receives `error`.
  /// Returns: false if another raised exception is still pending, or the body has been left.
  /// Not a switchpoint.
  bool raise(std::exception_ptr error) const;
  template <typename E>
    requires std::is_base_of_v<std::exception, std::decay_t<E>>
  bool raise(E&& error) const {
    return raise(std::make_exception_ptr(std::forward<E>(error)));
  }

  /// Asks the fiber to end: throws `cancelled` at the switchpoint it waits at, or else at its next
  /// one, and at every further one (see cancel.hpp for the exceptions). `reason` is a string
  /// literal and is not copied. Not a switchpoint.
  cancel_result cancel(const char* reason = "it was cancelled",
                       call_site site = call_site::here()) const;
  /// Asks the fiber to end, as cancel() does. If it has not ended after `grace`, its shields and
  /// handlers no longer hold the cancellation back; it is withheld only while the fiber unwinds.
  /// The grace applies to the whole tree: its children, on whatever thread, are then cancelled,
  /// too, and nothing holds that back. Not a switchpoint: await() waits for the end.
  cancel_result terminate(detail::timespan grace = std::chrono::seconds(5),
                          call_site site = call_site::here()) const;

  /// Waits until the fiber is dead.
  /// Switchpoint; on a thread that has no runtime it blocks the thread.
  /// Throws: the exception the fiber ended by; fiber_cancelled if it was cancelled;
  ///         a pending interruption; std::logic_error if the handle is empty, the awaited fiber is
  ///         the running one, or its thread is gone.
  [[gnu::always_inline]] void await() const {
    // This handle may be assigned another fiber meanwhile; the awaited fiber stays the same.
    detail::awaited reference(block());
    reference.await();
  }

 protected:
  explicit fiber_ref(detail::handle block) noexcept : block_(std::move(block)) {}
  friend fiber_ref current();
  friend class group;
  friend class detail::end_case;
  friend class detail::race;
  friend detail::control_block& detail::block_of(const fiber_ref& fiber);
  template <typename T>
  friend class resumer;

  detail::control_block& block() const {
    if (block_.get() == nullptr) detail::refuse_empty_handle();
    return *block_.get();
  }
  bool schedule_slot(detail::value_slot&& token) const;

  detail::handle block_;
};

/// A fiber and what its body returns. Move-only; destroying it neither ends nor awaits the fiber.
template <typename T>
class fiber;

/// Options of spin().
struct spin_options {
  std::string name = {};
  /// Usable bytes, of which motet takes up to 1 KiB; empty: the thread's default.
  std::optional<std::size_t> stack_size = {};
  /// group::await_all() does not wait for this fiber. Its waits hide neither a deadlock nor the end
  /// of all work: they do not count as something that could wake other fibers.
  bool transient = false;
};

/// Returns: the running fiber.
/// Not a switchpoint.
/// Throws: std::bad_alloc or std::system_error if this thread has no runtime and cannot start one.
fiber_ref current();

/// Goes to the back of the run queue, behind every fiber that is runnable now.
/// Switchpoint.
/// Throws: a pending interruption.
[[gnu::always_inline]] inline void snooze() {
  detail::thread_core& thread = detail::here_core();
  thread.deliver_before_switch();
  thread.snooze();
  detail::present_core().deliver_before_switch();
}

/// For loops that compute: throws a pending interruption, submits the operations queued for the
/// kernel, and yields if 500 us have passed since the thread last polled its backend.
/// Switchpoint.
/// Throws: a pending interruption.
void checkpoint();

/// Waits until schedule() gives this fiber a value of this very type.
/// suspend() in a main fiber also returns when no fiber is runnable and nothing is pending that
/// could wake one: so a program runs until all is done.
/// Returns: the value that was given to schedule(), perhaps before this call.
/// Switchpoint.
/// Throws: std::logic_error if the value was of another type; a pending interruption.
template <typename T = void>
T suspend() {
  detail::value_slot token = detail::suspend_for_token(!std::is_void_v<T>);
  if constexpr (std::is_void_v<T>) {
    if (token.filled() && !token.holds<detail::nothing>()) detail::refuse_token();
  } else {
    if (!token.holds<T>()) detail::refuse_token();
    return token.take<T>();
  }
}

namespace detail {

template <typename F>
using result_of_body = std::invoke_result_t<std::decay_t<F>&>;

template <typename F>
fiber<result_of_body<F>> spin_in(family* parents, spin_options* options, F&& body, call_site site);

}  // namespace detail

template <typename T>
class fiber : public fiber_ref {
  static_assert(!std::is_reference_v<T>,
                "a fiber's body cannot return a reference: return a pointer or a value");

 public:
  fiber() noexcept = default;
  fiber(fiber&&) noexcept = default;
  fiber& operator=(fiber&&) noexcept = default;

  /// Waits until the fiber is dead.
  /// Returns: what its body returned; valid as long as a handle to the fiber lives and the value
  ///          has not been taken.
  /// Switchpoint; on a thread that has no runtime it blocks the thread.
  /// Throws: as fiber_ref::await(); std::logic_error if the value has been taken.
  const T& await() const& {
    detail::control_block& target = block();
    detail::awaited reference(target);
    reference.await();
    return *static_cast<const T*>(detail::result_of(target));
  }
  /// The same, but moves the value out; another await() of the fiber then throws std::logic_error.
  /// Switchpoint.
  T await() && {
    const detail::handle reference = detail::refer_to(block());  // moving the value may teleport
    detail::await_value(*reference.get());
    return std::move(*static_cast<T*>(detail::take_result_of(*reference.get())));
  }

  /// Cancels the fiber. If that ends its body, awaiting it returns `result`. A move of T that
  /// throws ends the process.
  /// Not a switchpoint.
  /// Throws: std::bad_alloc for a value of more than 32 bytes, before anything has happened.
  cancel_result stop(T result, call_site site = call_site::here()) const {
    return detail::stop(block(), detail::value_slot::holding<T>(std::move(result)), site);
  }

 private:
  explicit fiber(detail::handle block) noexcept : fiber_ref(std::move(block)) {}
  friend class thread;
  template <typename F>
  friend fiber<detail::result_of_body<F>> detail::spin_in(detail::family*, spin_options*, F&&,
                                                          call_site);
};

template <>
class fiber<void> : public fiber_ref {
 public:
  fiber() noexcept = default;
  fiber(fiber&&) noexcept = default;
  fiber& operator=(fiber&&) noexcept = default;

  /// Cancels the fiber. If that ends its body, the fiber ends as if the body had returned.
  /// Not a switchpoint.
  cancel_result stop(call_site site = call_site::here()) const {
    return detail::stop(block(), detail::value_slot::holding(detail::nothing{}), site);
  }

 private:
  explicit fiber(detail::handle block) noexcept : fiber_ref(std::move(block)) {}
  friend class thread;
  template <typename F>
  friend fiber<detail::result_of_body<F>> detail::spin_in(detail::family*, spin_options*, F&&,
                                                          call_site);
};

template <typename F>
fiber<detail::result_of_body<F>> detail::spin_in(family* parents, spin_options* options, F&& body,
                                                 call_site site) {
  using body_type = std::decay_t<F>;
  using result_type = result_of_body<F>;
  fiber_start fresh(parents, options, body_kind_of<body_type, result_type>::kind, site);
  ::new (fresh.body()) body_type(std::forward<F>(body));
  if constexpr (!std::is_trivially_copyable_v<body_type>) fresh.look_again();
  return fiber<result_type>(fresh.start());
}

/// Spawns a fiber that calls `body`, moved into it; the fiber runs when its turn comes, not now. It
/// is a child of the running fiber, and is cancelled when its parent's body ends, after that body's
/// locals are destroyed: so `body` must own its captures. To borrow, spin in a group.
/// Returns: the handle, which may be dropped.
/// Not a switchpoint.
/// Throws: stack_unavailable; std::bad_alloc; std::invalid_argument for an impossible stack size;
///         `cancelled` if the running fiber has been cancelled and is not under a shield, or is
///         ending; what copying `body` or an inherited local throws: the copy may wait, but not
///         teleport.
template <typename F>
auto spin(F&& body, call_site site = call_site::here()) {
  return detail::spin_in(nullptr, nullptr, std::forward<F>(body), site);
}
template <typename F>
auto spin(spin_options options, F&& body, call_site site = call_site::here()) {
  return detail::spin_in(nullptr, &options, std::forward<F>(body), site);
}

}}  // namespace motet::MOTET_ABI
