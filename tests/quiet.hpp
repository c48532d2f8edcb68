// SPDX-License-Identifier: MIT
// A runtime for tests with several threads. Virtual time runs ahead of other threads, so one that
// waits for them seems stuck.
#pragma once

#include <chrono>
#include <exception>
#include <motet/runtime/run.hpp>

#include "run_here.hpp"

namespace testing {

inline motet::options quiet() {
  motet::options config;
  config.deadlock_report = std::chrono::milliseconds(0);
  return config;
}

/// Options under which a fiber may end before it has been thrown an `Error` that was raised in it.
template <typename Error>
motet::options poked(motet::options config = {}) {
  config.on_unhandled = [](const std::exception_ptr& late) {
    try {
      std::rethrow_exception(late);
    } catch (const Error&) {
      // Whoever raises at random comes too late now and then.
    }
  };
  return config;
}

}  // namespace testing
