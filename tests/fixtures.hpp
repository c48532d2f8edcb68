// SPDX-License-Identifier: MIT
// What tests throw, keep and count: the same in every room.
#pragma once

#include <motet/motet.hpp>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace testing {

using words = std::vector<std::string>;

struct first_error : std::runtime_error {
  first_error() : std::runtime_error("first") {}
};

struct second_error : std::runtime_error {
  second_error() : std::runtime_error("second") {}
};

struct oops : std::runtime_error {
  oops() : std::runtime_error("oops") {}
};

/// Notes a word when it is destroyed, unless it has been moved from.
struct note {
  note(words& target, std::string text) : trace(&target), word(std::move(text)) {}
  note(note&& other) noexcept
      : trace(std::exchange(other.trace, nullptr)), word(std::move(other.word)) {}
  note& operator=(note&&) = delete;
  ~note() {
    if (trace != nullptr) trace->push_back(word);
  }
  words* trace;
  std::string word;
};

/// Keeps count of itself.
struct counted {
  explicit counted(int& counter) : alive(&counter) { ++*alive; }
  counted(counted&& other) noexcept : alive(std::exchange(other.alive, nullptr)) {}
  counted& operator=(counted&&) = delete;
  ~counted() {
    if (alive != nullptr) --*alive;
  }
  int* alive;
};

/// Calls `function` when it goes.
template <typename F>
struct at_end {
  explicit at_end(F action) : function(std::move(action)) {}
  at_end(const at_end&) = delete;
  at_end& operator=(const at_end&) = delete;
  ~at_end() { function(); }
  F function;
};

/// The same, for what is done when a block is left.
template <typename F>
struct at_exit : at_end<F> {
  explicit at_exit(F action) : at_end<F>(std::move(action)) {}
};

/// Waits to be cancelled and fails then.
inline void fail_when_cancelled() {
  try {
    motet::sleep();
  } catch (const motet::cancelled&) {
    throw first_error();
  }
}

template <typename F>
bool throws_cancelled(F f) {
  try {
    f();
  } catch (const motet::cancelled&) {
    return true;
  }
  return false;
}

/// Returns: the error that `f` throws, or none.
template <typename F>
std::error_code error_of(F f) {
  try {
    f();
  } catch (const std::system_error& refused) {
    return refused.code();
  }
  return {};
}

inline constexpr auto bad_descriptor = std::errc::bad_file_descriptor;

/// Lets others run until `fiber` waits for something.
inline void until_waiting(const motet::fiber_ref& fiber) {
  using motet::fiber_state;
  while (fiber.state() != fiber_state::waiting && fiber.state() != fiber_state::dead) {
    motet::snooze();
  }
}

template <typename F>
void on_virtual_time(F f) {
  motet::options config;
  config.backend = "sim";
  motet::run(config, f);
}

}  // namespace testing
