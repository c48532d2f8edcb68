// SPDX-License-Identifier: MIT
// What makes a thread's new threads part of the simulation that it runs: real ones, of which only
// one runs at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI {

struct options;

namespace detail {

class thread_state;

/// A thread of a simulation, from before its creation to its end.
class simulated_thread {
 public:
  virtual ~simulated_thread() = default;
  /// Called by the thread, first: waits until it may run.
  virtual void begin() noexcept = 0;
  /// Called by the thread when its runtime has begun.
  /// Throws: std::bad_alloc.
  virtual void adopt(thread_state& home) = 0;
  /// Called by the thread, last: another one runs. Or by its creator, if it could not be created.
  virtual void end() noexcept = 0;
};

class simulated_threads {
 public:
  virtual ~simulated_threads() = default;
  /// Gives `settings`, of a new thread, the simulation's backend.
  virtual void prepare(options& settings) = 0;
  /// Adds a thread that is about to be created.
  virtual std::shared_ptr<simulated_thread> add() = 0;
  virtual std::size_t processors() const noexcept = 0;

  /// Returns: those of the simulation that the calling thread runs; null if it runs none.
  static simulated_threads* present() noexcept;
  static void set_present(simulated_threads* threads) noexcept;
};

}  // namespace detail
}}  // namespace motet::MOTET_ABI
