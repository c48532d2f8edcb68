// SPDX-License-Identifier: MIT
// boost::fibers::fiber. As in Boost, a fiber has no parent: it may outlive the fiber that starts
// it, nothing interrupts it, its thread does not end before it does, and an exception that leaves
// its function ends the program.
#pragma once

#include <compare>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <motet/base/errors.hpp>
#include <motet/compat/boost_fiber/errors.hpp>
#include <motet/compat/boost_fiber/stacks.hpp>
#include <motet/detail/core/control_block.hpp>
#include <motet/detail/core/internal_shield.hpp>
#include <motet/detail/core/scope.hpp>
#include <motet/fibers/fiber.hpp>
#include <ostream>
#include <tuple>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI {
namespace compat { namespace boost_fiber {

/// When a fiber begins. dispatch: before its constructor returns, after the fibers that can run by
/// then. post: when its turn comes.
enum class launch { dispatch, post };

class fiber;

}}  // namespace compat::boost_fiber

namespace detail {

/// What a fiber of Boost's does: calls a function with arguments, out of reach of interruptions.
/// Until then, the shield count, which the fiber's constructor has raised, holds those back.
template <typename F, typename... Arguments>
struct unrelated_body {
  void operator()() {
    const shield_scope shield;
    --shield.fiber->shields;
    try {
      std::apply(std::move(function), std::move(arguments));
    } catch (const cancelled&) {
      throw;  // of terminate(), which no shield holds back
    } catch (...) {
      std::terminate();
    }
  }

  F function;
  std::tuple<Arguments...> arguments;
};

template <typename F>
concept is_no_word_of_fibers = !std::is_same_v<std::decay_t<F>, compat::boost_fiber::fiber> &&
                               !std::is_same_v<std::decay_t<F>, compat::boost_fiber::launch> &&
                               !std::is_same_v<std::decay_t<F>, std::allocator_arg_t>;

}  // namespace detail

namespace compat { namespace boost_fiber {

class fiber {
 public:
  /// Identifies a fiber; a default-constructed id refers to no fiber.
  class id {
   public:
    /// Not a switchpoint.
    id() noexcept = default;
    /// Not a switchpoint.
    explicit id(std::uint64_t number) noexcept : number_(number) {}
    friend auto operator<=>(const id&, const id&) = default;
    /// Not a switchpoint.
    explicit operator bool() const noexcept { return number_ != no_number; }
    /// Writes the number that the fiber has in dumps and traces.
    /// Not a switchpoint.
    template <typename Character>
    friend std::basic_ostream<Character>& operator<<(std::basic_ostream<Character>& stream,
                                                     const id& number) {
      return number ? stream << number.number_ : stream << "{not-valid}";
    }

   private:
    static constexpr std::uint64_t no_number = ~std::uint64_t{0};
    std::uint64_t number_ = no_number;
  };

  /// Not a switchpoint.
  fiber() noexcept = default;

  /// Calls `f` with `arguments`, all moved or copied, on a fiber of this thread.
  /// Switchpoint with launch::dispatch, else not a switchpoint.
  /// Throws: as motet::spin(); what copying throws; with launch::dispatch a pending interruption,
  ///         before the new fiber starts.
  template <detail::is_no_word_of_fibers F, typename... Arguments>
  fiber(F&& f, Arguments... arguments)
      : fiber(launch::post, std::allocator_arg, default_stack(), std::forward<F>(f),
              std::move(arguments)...) {}
  template <detail::is_no_word_of_fibers F, typename... Arguments>
  fiber(launch policy, F&& f, Arguments... arguments)
      : fiber(policy, std::allocator_arg, default_stack(), std::forward<F>(f),
              std::move(arguments)...) {}
  template <typename Stack, typename F, typename... Arguments>
  fiber(std::allocator_arg_t, Stack&& stack, F&& f, Arguments... arguments)
      : fiber(launch::post, std::allocator_arg, std::forward<Stack>(stack), std::forward<F>(f),
              std::move(arguments)...) {}
  template <typename Stack, typename F, typename... Arguments>
  fiber(launch policy, std::allocator_arg_t, Stack&& stack, F&& f, Arguments... arguments) {
    if (policy == launch::dispatch) motet::detail::here_core().deliver_before_switch();
    using body = detail::unrelated_body<std::decay_t<F>, Arguments...>;
    spin_options options{.stack_size = stack.size()};
    runs_ = detail::spin_in(detail::children_of_main(), &options,
                            body{std::forward<F>(f), {std::move(arguments)...}}, call_site::here());
    ++detail::block_of(runs_).shields;
    if (policy == launch::dispatch) {
      const detail::internal_shield safe;
      motet::snooze();
    }
  }

  fiber(fiber&& other) noexcept : runs_(std::exchange(other.runs_, {})) {}
  fiber& operator=(fiber&& other) noexcept {
    end_if_joinable();
    runs_ = std::exchange(other.runs_, {});
    return *this;
  }
  /// Ends the program if the fiber was neither joined nor detached.
  /// Not a switchpoint.
  ~fiber() { end_if_joinable(); }

  /// Not a switchpoint.
  void swap(fiber& other) noexcept { std::swap(runs_, other.runs_); }
  /// Not a switchpoint.
  friend void swap(fiber& a, fiber& b) noexcept { a.swap(b); }
  /// Not a switchpoint.
  friend bool operator<(const fiber& a, const fiber& b) noexcept { return a.get_id() < b.get_id(); }

  /// Not a switchpoint.
  id get_id() const { return joinable() ? id(runs_.id()) : id(); }
  /// Not a switchpoint.
  bool joinable() const noexcept { return static_cast<bool>(runs_); }

  /// Waits for the fiber's end, from any thread.
  /// Switchpoint; nothing interrupts it, and a pending interruption is thrown at a later
  /// switchpoint.
  /// Throws: fiber_error if the fiber is not joinable, or is the running fiber; the failure of a
  ///         child that the fiber has spawned with motet::spin().
  void join() {
    check();
    if (runs_ == motet::current()) {
      throw fiber_error(make_error_code(std::errc::resource_deadlock_would_occur),
                        "a fiber cannot join itself");
    }
    const motet::fiber<void> body = std::exchange(runs_, {});
    const detail::shield_scope shield;
    body.await();
  }

  /// Detaches the fiber from this handle.
  /// Not a switchpoint.
  /// Throws: fiber_error if the handle is not joinable.
  void detach() {
    check();
    runs_ = {};
  }

 private:
  void check() const {
    if (!joinable()) {
      throw fiber_error(make_error_code(std::errc::invalid_argument), "the fiber is not joinable");
    }
  }
  void end_if_joinable() const noexcept {
    if (joinable()) std::terminate();
  }

  motet::fiber<void> runs_;
};

}}  // namespace compat::boost_fiber
}}  // namespace motet::MOTET_ABI
