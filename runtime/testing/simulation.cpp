// SPDX-License-Identifier: MIT
// See testing/simulation.hpp.
#include "testing/simulation.hpp"

#include <sys/eventfd.h>

#include <cerrno>
#include <motet/io/io.hpp>
#include <system_error>

namespace motet { inline namespace MOTET_ABI { namespace testing {

namespace {

fd make_descriptor() {
  fd result(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!result) throw std::system_error(errno, std::system_category(), "eventfd");
  return result;
}

}  // namespace

thread_local simulation* simulation::present_ = nullptr;

simulation::simulation(const plan& how)
    : choices(how.seed, how.log.empty() ? std::vector<decision>() : log_of(how.log)),
      plan_(how),
      occasions_(make_descriptor()) {
  present_ = this;
}

simulation::~simulation() {
  present_ = nullptr;
}

void simulation::await(occasion what) const {
  io::wait_fd(occasions_.get(), static_cast<short>(what));
}

void simulation::fail(std::string why) {
  if (failure_.empty()) failure_ = std::move(why);
}

void simulation::step() {
  ++steps_;
  if (steps_ >= plan_.steps)
    fail("the limit of " + std::to_string(plan_.steps) + " steps was reached");
  if (choices.difference().has_value())
    fail("the run differs from the log: " + *choices.difference());
}

bool simulation::buggify(call_site site) {
  constexpr std::uint32_t rarity = 4;
  const auto [found, is_new] = buggy_.try_emplace({site.file, site.line}, false);
  if (is_new) found->second = choices.decide(choice::buggify, rarity) == 1;
  return found->second && choices.decide(choice::buggify, rarity) == 1;
}

outcome simulation::result(clock::duration span) const {
  return {!failed(), failure_, plan_.seed, text_of(choices.made()), choices.count(), steps_, span};
}

bool buggify(call_site site) {
  simulation* const inside = simulation::present();
  return inside != nullptr && inside->buggify(site);
}

}}}  // namespace motet::MOTET_ABI::testing
