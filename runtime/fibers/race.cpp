// SPDX-License-Identifier: MIT
// Races: which attempt was the first to win, and how the others end.
#include <algorithm>
#include <motet/detail/fibers/race.hpp>
#include <motet/fibers/await.hpp>
#include <stdexcept>
#include <string>

namespace motet { inline namespace MOTET_ABI {

namespace detail {

race::race(std::size_t entrants, rule ends) : ends_(ends), entrants_(entrants) {
  fibers_.family_.looked_after = true;
}

void race::win(std::size_t index) {
  winner_ = index;
  fibers_.cancel("another was first", {});
}

void race::fail(std::size_t index, std::exception_ptr error) {
  if (over()) return;
  entrants_[index].error = std::move(error);
  if (!first_failed_) first_failed_ = index;
  if (ends_ == rule::first_failure) win(index);
}

std::optional<std::size_t> race::run() {
  await_all();
  judge_ends();
  return winner_;
}

void race::await_all() {
  for (;;) {
    try {
      fibers_.await_all();
      return;
    } catch (...) {
      if (!is_counted(std::current_exception())) throw;
    }
  }
}

bool race::ended_by(const fiber_ref& fiber, const std::exception_ptr& error) noexcept {
  if (!fiber) return false;
  const control_block& block = fiber.block();
  return block.dead() && block.ended_by == outcome::error && block.error == error;
}

/// Whether `error` is the failure of an awaited fiber, which the race counts and need not throw.
/// The owner may receive the failure of such a child before the attempt awaits the child; the
/// attempt receives it, too, when it does.
bool race::is_counted(const std::exception_ptr& error) const noexcept {
  return std::any_of(entrants_.begin(), entrants_.end(),
                     [&](const entrant& contestant) { return ended_by(contestant.target, error); });
}

namespace {

struct failure {
  std::exception_ptr error;
  bool is_cancellation;
};

/// Returns: what awaiting the dead fiber throws.
failure failure_of(const control_block& dead) {
  try {
    throw_outcome(dead);
  } catch (const fiber_cancelled&) {
    return {std::current_exception(), true};
  } catch (...) {
    return {std::current_exception(), false};
  }
}

}  // namespace

/// An attempt's fiber may have failed though its body has not: it was cancelled, perhaps before it
/// began, or its own children have failed while they were ended. A winner whose fiber failed is no
/// winner; the failures of losers are dropped.
void race::judge_ends() {
  for (std::size_t index = 0; index < entrants_.size(); ++index) {
    const entrant& contestant = entrants_[index];
    const control_block& block = contestant.fiber.block();
    if (contestant.error != nullptr || (over() && index != *winner_)) continue;
    if (block.ended_by == outcome::value) continue;
    const failure cause = failure_of(block);
    if (!over()) {
      fail(index, cause.error);
    } else if (!cause.is_cancellation) {
      std::rethrow_exception(cause.error);
    }
  }
}

void race::rethrow_first_failure() const {
  if (first_failed_) std::rethrow_exception(entrants_[*first_failed_].error);
}

void race::rethrow_first_but_cancelled() const {
  for (const entrant& contestant : entrants_) {
    try {
      if (contestant.error != nullptr) std::rethrow_exception(contestant.error);
    } catch (const fiber_cancelled&) {
    }
  }
}

void race::throw_all_failed() const {
  std::vector<std::exception_ptr> errors;
  errors.reserve(entrants_.size());
  for (const entrant& contestant : entrants_) errors.push_back(contestant.error);
  throw all_failed(std::move(errors));
}

void check_entrants(std::size_t count, const char* verb) {
  if (count == 0) throw std::invalid_argument(std::string(verb) + "(): no fibers were given");
}

void check_contestant(const fiber_ref& handle) {
  if (!handle) refuse_empty_handle();
  if (handle == current()) refuse_to_await_oneself();
}

void await_each(const std::vector<fiber_ref>& handles) {
  if (self_core() == nullptr) {  // a thread without fibers: it blocks, and starts none
    for (const fiber_ref& contestant : handles) contestant.await();
    return;
  }
  for (const fiber_ref& contestant : handles) check_contestant(contestant);
  race awaiters(handles.size(), race::rule::first_failure);
  for (const fiber_ref& contestant : handles) {
    awaiters.enter([&contestant](std::size_t) { contestant.await(); }, contestant);
  }
  awaiters.run();
  awaiters.rethrow_first_failure();
}

std::size_t await_one(const std::vector<fiber_ref>& handles) {
  check_entrants(handles.size(), "await_any");
  for (const fiber_ref& contestant : handles) check_contestant(contestant);
  race awaiters(handles.size(), race::rule::first_win);
  for (const fiber_ref& contestant : handles) {
    const auto attempt = [&awaiters, &contestant](std::size_t index) {
      contestant.await();
      if (!awaiters.over()) awaiters.win(index);
    };
    awaiters.enter(attempt, contestant);
  }
  const std::optional<std::size_t> first = awaiters.run();
  if (!first) awaiters.throw_all_failed();
  return *first;
}

}  // namespace detail

std::size_t await_any() {
  throw std::invalid_argument("await_any(): no fibers were given");
}

void first_value() {
  throw std::invalid_argument("first_value(): no fibers were given");
}

}}  // namespace motet::MOTET_ABI
