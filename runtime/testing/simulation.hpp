// SPDX-License-Identifier: MIT
// One run of a simulated world: what its backend, its order and its functions share.
#pragma once

#include <poll.h>

#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <motet/base/call_site.hpp>
#include <motet/base/clock.hpp>
#include <motet/io/fd.hpp>
#include <motet/runtime/backend.hpp>
#include <motet/testing.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "testing/baton.hpp"
#include "testing/coverage.hpp"
#include "testing/decisions.hpp"
#include "testing/disk/disks.hpp"
#include "testing/net/network.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

/// What fibers wait for in a world: the events of a descriptor that is never ready by itself.
enum class occasion : short {
  idle = POLLIN,       // all other fibers wait
  advanced = POLLPRI,  // the time of a fiber in await_time() has come
  never = POLLOUT      // this one does not come
};

/// Returns: "file:line"; "the main function" for a fiber that was not spun.
std::string text_of(call_site site);

/// Returns: the exception's message; "an exception" if its class is not known.
std::string text_of(std::exception_ptr failure);

/// A wait for an occasion, in the order of their beginning.
struct occasion_wait {
  operation* op = nullptr;
  completions* results = nullptr;  // of the thread that has submitted it
};

struct invariant {
  std::function<bool()> holds;
  call_site site;  // of always()
};

class simulation {
 public:
  /// `seen` may be null.
  simulation(const plan& how, decisions source, coverage* seen);
  simulation(const simulation&) = delete;
  simulation& operator=(const simulation&) = delete;
  ~simulation();

  /// Returns: the one that the calling thread runs; or null.
  static simulation* present() noexcept { return present_; }
  /// From here on the calling thread runs it.
  void enter_thread() noexcept;
  static void leave_thread() noexcept;
  std::unique_ptr<backend> make_backend();

  world surroundings() noexcept { return world(*this); }
  const plan& settings() const noexcept { return plan_; }
  /// Waits until the backend ends the wait.
  /// Switchpoint.
  void await(occasion what) const;
  /// The same for an instant, to which time passes even if it stands otherwise.
  void await_time(clock::time_point until);
  /// Returns: the first instant for which a fiber waits; the maximum if none does.
  clock::time_point next_awaited() const noexcept;
  int descriptor() const noexcept { return occasions_.get(); }

  /// The simulation ends soon. The first failure counts.
  void fail(std::string why);
  bool failed() const noexcept { return !failure_.empty(); }
  /// Whether it has failed, and end_function() is still to be called.
  bool function_runs_on() const noexcept { return failed() && cancel_function != nullptr; }
  /// After a poll: cancels the function if the simulation has failed.
  void end_function();
  /// Ends the process, because the simulation has failed and its fibers do not end.
  [[noreturn]] void give_up();
  /// At a switch.
  void step();
  std::size_t steps() const noexcept { return steps_; }
  /// Fails if a decision of the fiber that was spun at `site` differs from the log's.
  void report_difference(call_site site);
  /// As testing::buggify().
  bool buggify(call_site site);
  outcome result(clock::duration span) const;

  /// Whether order::pct lowers the priorities of what runs in this step.
  bool priorities_change();

  /// Nothing is decided against the program from now on.
  void end_faults();

  decisions choices;
  network net;
  disks storage;
  baton threads;
  std::vector<occasion_wait> waits;
  std::deque<invariant> invariants;
  std::function<void()> cancel_function;  // while it runs
  clock::time_point time;                 // virtual
  const clock::time_point start;

 private:
  void decide_priority_changes();

  using code_place = std::pair<std::string, unsigned>;  // the same in each build of a program

  static thread_local simulation* present_;

  const plan plan_;
  const fd occasions_;
  coverage* const seen_;
  std::string failure_;
  std::vector<std::size_t> priority_changes_;  // steps; those to come
  std::size_t steps_ = 0;
  std::size_t steps_after_failure_ = 0;
  std::multiset<clock::time_point> awaited_;
  std::map<code_place, bool> buggy_;  // those that were reached
  bool faults_are_over_ = false;
};

}}}  // namespace motet::MOTET_ABI::testing
