// SPDX-License-Identifier: MIT
// One run of a simulated world: what its backend, its order and its functions share.
#pragma once

#include <poll.h>

#include <cstddef>
#include <functional>
#include <map>
#include <motet/base/call_site.hpp>
#include <motet/base/clock.hpp>
#include <motet/io/fd.hpp>
#include <motet/testing.hpp>
#include <string>
#include <utility>
#include <vector>

#include "testing/decisions.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

/// What fibers wait for in a world: the events of a descriptor that is never ready by itself.
enum class occasion : short {
  idle = POLLIN,       // all other fibers wait
  advanced = POLLPRI,  // the time is `target`
  over = POLLOUT       // the simulation has failed
};

struct invariant {
  std::function<bool()> holds;
  call_site site;  // of always()
};

class simulation {
 public:
  explicit simulation(const plan& how);
  simulation(const simulation&) = delete;
  simulation& operator=(const simulation&) = delete;
  ~simulation();

  /// Returns: the one that the calling thread runs; or null.
  static simulation* present() noexcept { return present_; }

  world surroundings() noexcept { return world(*this); }
  const plan& settings() const noexcept { return plan_; }
  /// Waits until the backend ends the wait.
  /// Switchpoint.
  void await(occasion what) const;
  int descriptor() const noexcept { return occasions_.get(); }

  /// The simulation ends soon. The first failure counts.
  void fail(std::string why);
  bool failed() const noexcept { return !failure_.empty(); }
  /// At a switch.
  void step();
  /// As testing::buggify().
  bool buggify(call_site site);
  outcome result(clock::duration span) const;

  decisions choices;
  std::vector<invariant> invariants;
  clock::time_point start{};   // in virtual time
  clock::time_point target{};  // of advance()

 private:
  using place = std::pair<std::string, unsigned>;  // the same in each build of a program

  static thread_local simulation* present_;

  const plan plan_;
  const fd occasions_;
  std::string failure_;
  std::size_t steps_ = 0;
  std::map<place, bool> buggy_;  // the places that were reached
};

}}}  // namespace motet::MOTET_ABI::testing
