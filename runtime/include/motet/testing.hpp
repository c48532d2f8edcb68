// SPDX-License-Identifier: MIT
// Deterministic simulation, for tests: a program of fibers runs in virtual time, and a seed makes
// the choices that the contract leaves open. The same seed gives the same run, so every failure can
// be repeated. A program that includes this header must be linked with motet-testing. See
// docs/testing.md.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <motet/base/call_site.hpp>
#include <motet/base/clock.hpp>
#include <motet/detail/base/abi.hpp>
#include <string>

namespace motet { inline namespace MOTET_ABI { namespace testing {

/// Which runnable fiber runs next.
enum class order {
  open,  // the first in the queue, as usual; fibers that one instant wakes enter it in any order
  any    // any of them
};

/// When virtual time passes.
enum class time_mode {
  jumps,  // when every fiber waits, to the next timer
  stands  // in world::advance() only
};

/// What to run.
struct plan {
  std::uint64_t seed = 0;
  order how = order::open;
  time_mode time = time_mode::jumps;
  /// The simulation fails when so much virtual time has passed, or so many switches were made.
  clock::duration horizon = std::chrono::hours(1);
  std::size_t steps = 10'000'000;
  /// A log of decisions to follow, as outcome::log has it; then the seed decides. Empty: none.
  std::string log = {};
};

/// How a simulation went.
struct outcome {
  bool passed = false;
  std::string failure;  // the first one
  std::uint64_t seed = 0;
  std::string log;  // the decisions, one per line
  std::size_t decisions = 0;
  std::size_t steps = 0;   // switches
  clock::duration span{};  // virtual time
};

class simulation;

/// The simulated world. Only fibers that run in it may use it.
class world {
 public:
  world(const world&) = delete;
  world& operator=(const world&) = delete;

  /// Waits until all other fibers wait, and only time can wake one.
  /// Switchpoint.
  /// Throws: a pending interruption.
  void until_idle();
  /// Lets `span` pass. Timers that are due by then fire, each at its time; then, all fibers wait.
  /// Switchpoint.
  /// Throws: std::invalid_argument if `span` is negative; a pending interruption.
  void advance(clock::duration span);
  /// Until the function of run() returns, the simulation fails as soon as `condition`, an
  /// invariant, returns false or throws. It is called at each switch, and must call no
  /// switchpoint. Declare the variables it uses before any group, whose destructor waits.
  /// Not a switchpoint.
  void always(std::function<bool()> condition, call_site site = call_site::here());
  /// Waits until `condition` returns true; it is called whenever all fibers wait. The simulation
  /// fails if that takes longer than `limit` of virtual time.
  /// Switchpoint.
  /// Throws: what `condition` throws; a pending interruption.
  void eventually(const std::function<bool()>& condition, clock::duration limit,
                  call_site site = call_site::here());
  /// Returns: a number in [0, count), which the seed decides.
  /// Not a switchpoint.
  /// Throws: std::invalid_argument if `count` is 0.
  std::uint32_t random(std::uint32_t count);

 private:
  friend class simulation;
  explicit world(simulation& inside) noexcept : inside_(inside) {}

  simulation& inside_;
};

/// Runs `function` in a world of its own, on the calling thread, where motet::run() must be
/// possible. `MOTET_BACKEND` has no effect. If fibers go on although the simulation has failed and
/// they are cancelled, or if memory is exhausted, the process ends.
/// Returns: how it went. It failed if `function` threw, if all fibers wait for one another, at the
///          horizon, after all steps, or if the run differs from the plan's log.
/// Not a switchpoint.
/// Throws: std::logic_error if the thread is in run(), or if the library motet is not of the
///         version of motet-testing; std::invalid_argument if plan.log is not a log.
outcome run(const plan& how, const std::function<void(world&)>& function);

/// Runs `function` with the seeds 0, 1, 2 and so on, `seeds` in all, until one fails; one in twenty
/// runs twice, and must run alike. A failure is written to stderr, with the variables that repeat
/// it: with MOTET_SEED in the environment only that seed runs, and with MOTET_LOG, the path of a
/// file, its log is followed. `how` is the plan of each run.
/// Returns: the number of seeds that failed, 0 or 1.
/// Not a switchpoint.
/// Throws: as run(); std::invalid_argument if MOTET_SEED is not a number, or MOTET_LOG cannot be
///         read.
int explore(std::size_t seeds, const std::function<void(world&)>& function, plan how = {});

/// Whether an unlikely but possible event is to happen here, in code under test: in a quarter of
/// all simulations for each `site`, and there in a quarter of the calls; elsewhere never.
/// Not a switchpoint.
/// Throws: std::bad_alloc.
bool buggify(call_site site = call_site::here());

}}}  // namespace motet::MOTET_ABI::testing
