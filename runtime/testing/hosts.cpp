// SPDX-License-Identifier: MIT
// See testing/hosts.hpp.
#include "testing/hosts.hpp"

#include <exception>
#include <memory>
#include <motet/base/errors.hpp>
#include <motet/testing.hpp>
#include <stdexcept>
#include <utility>

#include "testing/simulation.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

/// The group's destructor cancels the program and waits for its end.
host_state::~host_state() {
  crash(true);
}

void host_state::start() {
  at_.up = true;
  runs_ = true;
  body_ = family_.spin({.name = at_.name}, [this] { run(); }, site_);
}

/// Whatever happens in a life that is over has no effect.
void host_state::run() {
  const residence home{&at_, at_.life};
  present_residence() = home;
  std::exception_ptr cancellation;
  try {
    main_();
  } catch (const cancelled&) {
    cancellation = std::current_exception();
  } catch (...) {
    if (home.alive())
      inside_.fail("the host " + at_.name + " threw: " + text_of(std::current_exception()));
  }
  runs_ = false;
  if (const std::optional<call_site> maker = inside_.net.left_open(home))
    inside_.fail("the host " + at_.name + " left a socket open, made by the fiber of " +
                 text_of(*maker));
  if (cancellation != nullptr) std::rethrow_exception(cancellation);
}

void host_state::crash(bool resets) {
  if (!at_.up) return;
  inside_.net.crash(at_, resets);
  ++at_.life;
  if (runs_) body_.cancel("its host has crashed", site_);
}

void host_state::await_end() {
  if (!body_) return snooze();
  try {
    body_.await();
  } catch (const fiber_cancelled&) {
  }
  body_ = {};
}

host::host(std::unique_ptr<host_state> state) noexcept : state_(std::move(state)) {}
host::host(host&&) noexcept = default;
host::~host() = default;

const std::string& host::name() const noexcept {
  return state_->at().name;
}

std::string host::address() const {
  return text_of(state_->at());
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
  if (present_residence().at == &state.at())
    throw std::logic_error("world::crash() of " + crashed.name() + " on a fiber of that host");
  if (state.at().up) state.crash(inside_.choices.decide(choice::crash, 2) == 0);
  state.await_end();
}

void world::restart(host& restarted) {
  host_state& state = *restarted.state_;
  if (state.at().up && state.running())
    throw std::logic_error("world::restart() of " + restarted.name() + ", which is running");
  if (state.at().up) state.crash(true);
  state.await_end();
  state.start();
}

void world::partition(const host& from, const host& to, direction which) {
  const machine& first = from.state_->at();
  const machine& second = to.state_->at();
  inside_.net.cut(first, second);
  if (which == direction::both) inside_.net.cut(second, first);
}

void world::heal() {
  inside_.net.heal();
}

network_rules& world::net() noexcept {
  return inside_.net.rules;
}

}}}  // namespace motet::MOTET_ABI::testing
