// SPDX-License-Identifier: MIT
// Fibers that run against each other in the frame of one call: the first to win ends the others,
// and all have ended before the call returns.
#pragma once

#include <concepts>
#include <cstddef>
#include <exception>
#include <motet/base/errors.hpp>
#include <motet/detail/sync/awaitable.hpp>
#include <motet/fibers/fiber.hpp>
#include <motet/fibers/group.hpp>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class race {
 public:
  /// What ends the race: only a call to win(), or the first failure as well.
  enum class rule { first_win, first_failure };

  race(std::size_t entrants, rule ends);

  /// Spins a fiber that calls `attempt(index)`; indices count from 0. If `attempt` only awaits the
  /// fiber `target`, the failure of that fiber counts as the attempt's, even if the owner of
  /// the race already knows of it.
  template <typename Body>
  void enter(Body entrant_body, fiber_ref target = {}) {
    const std::size_t index = entrant_count_++;
    entrants_[index].target = std::move(target);
    entrants_[index].fiber = fibers_.spin([this, index, entrant_body] {
      try {
        entrant_body(index);
      } catch (const cancelled&) {
        throw;
      } catch (...) {
        fail(index, std::current_exception());
      }
    });
  }

  /// Called by an attempt as its last act, unless the race is over().
  void win(std::size_t index);
  bool over() const noexcept { return winner_.has_value(); }

  /// Waits until all attempts have ended.
  /// Returns: the index of the winner, if there is one.
  std::optional<std::size_t> run();

  /// After a race without a winner:
  void rethrow_first_failure() const;
  /// The same, but ignores those that were cancelled.
  void rethrow_first_but_cancelled() const;
  [[noreturn]] void throw_all_failed() const;

 private:
  struct entrant {
    fiber_ref fiber;
    fiber_ref target;
    std::exception_ptr error;
  };

  void fail(std::size_t index, std::exception_ptr error);
  void await_all();
  void judge_ends();
  static bool ended_by(const fiber_ref& fiber, const std::exception_ptr& error) noexcept;
  bool is_counted(const std::exception_ptr& error) const noexcept;

  rule ends_;
  std::size_t entrant_count_ = 0;
  std::optional<std::size_t> winner_;
  std::optional<std::size_t> first_failed_;
  std::vector<entrant> entrants_;
  group fibers_;  // last member: its fibers use the other members until they have ended
};

/// Throws: std::invalid_argument if `count` is 0.
void check_entrants(std::size_t count, const char* verb);
/// Throws: std::logic_error for an empty handle, or the running fiber's own.
void check_contestant(const fiber_ref& handle);

/// The first body that returns wins; the others' results are destroyed in their own fibers.
template <typename T, typename Body>
void enter_for_any(race& runners, std::optional<value_of<T>>& prize, Body& body) {
  runners.enter([&runners, &prize, &body](std::size_t index) {
    if constexpr (std::is_void_v<T>) {
      body();
      if (runners.over()) return;
      prize.emplace();
      runners.win(index);
    } else {
      T value = body();
      if (runners.over()) return;
      prize.emplace(std::move(value));
      runners.win(index);
    }
  });
}

/// The first body that returns an optional with a value wins.
template <typename Optional, typename Body>
void enter_for_value(race& runners, Optional& prize, Body& body) {
  runners.enter([&runners, &prize, &body](std::size_t index) {
    Optional value = body();
    if (!value || runners.over()) return;
    prize.emplace(std::move(*value));
    runners.win(index);
  });
}

template <typename T>
auto finish_any(race& runners, std::optional<value_of<T>>& prize) {
  const std::optional<std::size_t> winner = runners.run();
  if (!winner) runners.throw_all_failed();
  if constexpr (std::is_void_v<T>) {
    return *winner;
  } else {
    return std::pair<std::size_t, T>(*winner, std::move(*prize));
  }
}

void await_each(const std::vector<fiber_ref>& handles);
std::size_t await_one(const std::vector<fiber_ref>& handles);

template <typename T>
std::optional<T> first_value_of(const std::vector<const fiber<std::optional<T>>*>& handles) {
  check_entrants(handles.size(), "first_value");
  for (const auto* contestant : handles) check_contestant(*contestant);
  std::optional<T> prize;
  race awaiters(handles.size(), race::rule::first_win);
  for (const auto* contestant : handles) {
    const auto attempt = [&awaiters, &prize, contestant](std::size_t index) {
      const std::optional<T>& value = contestant->await();
      if (!value || awaiters.over()) return;
      prize.emplace(*value);
      awaiters.win(index);
    };
    awaiters.enter(attempt, *contestant);
  }
  if (!awaiters.run()) awaiters.rethrow_first_failure();
  return prize;
}

template <typename T>
struct value_in_handle {
  static_assert(!std::is_same_v<T, T>, "first_value needs handles to fibers that return optionals");
};
template <typename T>
struct value_in_handle<fiber<std::optional<T>>> {
  using type = T;
};

template <typename T>
struct value_in_optional {
  static_assert(!std::is_same_v<T, T>, "first_value needs callables that return optionals");
  using type = T;
};
template <typename T>
struct value_in_optional<std::optional<T>> {
  using type = T;
};

template <typename Joiner, typename T>
inline constexpr bool accepts_value = requires(Joiner& joiner, std::size_t index, T value) {
  { joiner.on_value(index, std::move(value)) } -> std::convertible_to<bool>;
};
template <typename Joiner>
inline constexpr bool accepts_value<Joiner, void> = requires(Joiner& joiner, std::size_t index) {
  { joiner.on_value(index) } -> std::convertible_to<bool>;
};

/// Whether `Joiner` can be told how a `Body` ends.
template <typename Joiner, typename Body>
concept joins = callable_body<Body> && accepts_value<Joiner, returned_by<Body>> &&
                requires(Joiner& joiner, std::size_t index, std::exception_ptr error) {
                  { joiner.on_failure(index, error) } -> std::convertible_to<bool>;
                };

/// A race in which an object of the program decides when enough have ended.
template <typename Joiner>
class joined_race {
 public:
  joined_race(Joiner& joiner, std::size_t entrants)
      : joiner_(joiner), runners_(entrants, race::rule::first_win) {}

  template <typename Body>
  void enter(Body& body) {
    static_assert(joins<Joiner, Body&>, "the joiner has no fitting on_value() and on_failure()");
    runners_.enter([this, &body](std::size_t index) { attempt(index, body); });
  }

  /// Returns: whether the joiner was satisfied.
  /// Throws: an exception of the joiner.
  bool run() {
    const bool enough = runners_.run().has_value();
    if (error_ != nullptr) std::rethrow_exception(error_);
    if (!enough) runners_.rethrow_first_but_cancelled();
    return enough;
  }

 private:
  template <typename Body>
  void attempt(std::size_t index, Body& body) {
    try {
      if constexpr (std::is_void_v<returned_by<Body&>>) {
        body();
        tell(index, [&] { return joiner_.on_value(index); });
      } else {
        auto value = body();
        tell(index, [&] { return joiner_.on_value(index, std::move(value)); });
      }
    } catch (const cancelled&) {
      throw;
    } catch (...) {
      tell(index, [&] { return joiner_.on_failure(index, std::current_exception()); });
    }
  }

  /// Throws nothing: what the joiner throws ends the race, and is kept.
  template <typename Tell>
  void tell(std::size_t index, Tell report) {
    if (runners_.over()) return;
    bool enough = true;
    try {
      enough = report();
    } catch (...) {
      error_ = std::current_exception();
    }
    if (enough) runners_.win(index);
  }

  Joiner& joiner_;
  std::exception_ptr error_;
  race runners_;  // last member: its fibers use the others
};

}}}  // namespace motet::MOTET_ABI::detail
