// SPDX-License-Identifier: MIT
// A host of a simulated world: a program on a machine, which can crash and be started again.
#pragma once

#include <functional>
#include <motet/base/call_site.hpp>
#include <motet/fibers/group.hpp>
#include <motet/sync/event.hpp>
#include <string>

#include "testing/net/machine.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

class simulation;

/// Why the fibers of a crashed host are cancelled.
inline constexpr char host_crashed[] = "its host has crashed";

class host_state {
 public:
  host_state(simulation& inside, machine& computer, std::function<void()> main, call_site site)
      : inside_(inside), computer_(computer), main_(std::move(main)), site_(site) {}
  host_state(const host_state&) = delete;
  host_state& operator=(const host_state&) = delete;
  ~host_state();

  machine& computer() const noexcept { return computer_; }
  bool running() const noexcept { return runs_ && computer_.up; }
  void start();
  /// Ends its machine's life. If `resets`, its peers are told.
  void crash(bool resets);
  /// Switchpoint.
  void await_end();

 private:
  void run();
  void end();
  void end_children(const residence& home);
  void report_left_open(const residence& home);

  simulation& inside_;
  machine& computer_;
  const std::function<void()> main_;
  const call_site site_;  // of world::add()
  bool runs_ = false;
  bool has_begun_ = false;  // a fiber that is cancelled before calls nothing
  local::event ended_;
  group family_;
};

}}}  // namespace motet::MOTET_ABI::testing
