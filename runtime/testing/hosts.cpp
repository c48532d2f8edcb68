// SPDX-License-Identifier: MIT
// See testing/hosts.hpp.
#include "testing/hosts.hpp"

#include <exception>
#include <memory>
#include <motet/base/errors.hpp>
#include <motet/fibers/fiber.hpp>
#include <motet/testing.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "cancellation/child_failures.hpp"
#include "core/thread_state.hpp"
#include "fibers/family.hpp"
#include "testing/simulation.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

/// The group's destructor cancels the program and waits for its end.
host_state::~host_state() {
  crash(true);
}

void host_state::start() {
  family_.spin({.name = computer_.name}, [this] { run(); }, site_);
  computer_.up = true;
  runs_ = true;
  has_begun_ = false;
  ended_.reset();
  inside_.net.resume();
}

/// Whatever happens in a life that is over has no effect.
void host_state::run() {
  has_begun_ = true;
  const residence home{&computer_, computer_.life};
  present_residence() = home;
  std::exception_ptr cancellation;
  try {
    main_();
  } catch (const cancelled&) {
    cancellation = std::current_exception();
  } catch (...) {
    if (home.alive())
      inside_.fail("the host " + computer_.name + " threw: " + text_of(std::current_exception()));
  }
  end_children(home);
  if (home.alive()) report_left_open(home);
  end();
  if (cancellation != nullptr) std::rethrow_exception(cancellation);
}

void host_state::end_children(const residence& home) {
  if (!detail::end_own_children("the program of its host is over")) return;
  while (const std::exception_ptr error = detail::take_error_of_child(detail::here().running())) {
    if (home.alive()) inside_.fail("the host " + computer_.name + " threw: " + text_of(error));
  }
}

void host_state::report_left_open(const residence& home) {
  const auto report = [&](const char* what, const std::optional<call_site>& maker) {
    if (maker.has_value())
      inside_.fail("the host " + computer_.name + " left a " + what +
                   " open, made by the fiber of " + text_of(*maker));
  };
  report("socket", inside_.net.left_open(home));
  report("file", inside_.storage.left_open(home));
}

void host_state::crash(bool resets) {
  if (!computer_.up) return;
  inside_.net.crash(computer_, resets);
  ++computer_.life;
  if (!runs_) return;
  family_.cancel(host_crashed, site_);
  if (!has_begun_) end();
}

void host_state::end() {
  runs_ = false;
  ended_.set();
}

void host_state::await_end() {
  if (!runs_) return snooze();
  ended_.wait();
}

host::host(std::unique_ptr<host_state> state) noexcept : state_(std::move(state)) {}
host::host(host&&) noexcept = default;
host::~host() = default;

const std::string& host::name() const noexcept {
  return state_->computer().name;
}

std::string host::address() const {
  return text_of(state_->computer());
}

bool host::running() const noexcept {
  return state_->running();
}

host world::add(std::string name, std::function<void()> main, call_site site) {
  if (name.empty() || inside_.net.address_of(name).has_value())
    throw std::invalid_argument("world::add() needs a new name, not \"" + name + "\"");
  auto state = std::make_unique<host_state>(inside_, inside_.net.add(std::move(name)),
                                            std::move(main), site);
  state->start();
  return host(std::move(state));
}

void world::crash(host& crashed) {
  host_state& state = *crashed.state_;
  if (present_residence().owner == &state.computer())
    throw std::logic_error("world::crash() of " + crashed.name() + " on a fiber of that host");
  if (state.computer().up) {
    const bool power_fails = inside_.choices.decide(choice::crash, 2) == 1;
    state.crash(!power_fails);
    if (power_fails) inside_.storage.fail(state.computer());
  }
  state.await_end();
}

void world::restart(host& restarted) {
  host_state& state = *restarted.state_;
  const auto check = [&] {
    if (state.running())
      throw std::logic_error("world::restart() of " + restarted.name() + ", which is running");
  };
  check();
  state.crash(true);
  state.await_end();
  check();  // another fiber may have started it meanwhile
  state.start();
}

void world::partition(const host& source, const host& target, direction which) {
  const machine& first = source.state_->computer();
  const machine& second = target.state_->computer();
  inside_.net.cut(first, second);
  if (which == direction::both) inside_.net.cut(second, first);
}

void world::heal() {
  inside_.net.heal();
}

disk_rules& world::disk() noexcept {
  return inside_.storage.rules;
}

network_rules& world::net() noexcept {
  return inside_.net.rules;
}

}}}  // namespace motet::MOTET_ABI::testing
