// SPDX-License-Identifier: MIT
// See testing/simulation.hpp.
#include "testing/simulation.hpp"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <motet/io/io.hpp>
#include <motet/runtime/options.hpp>
#include <system_error>
#include <utility>

#include "platform/simulated_system.hpp"
#include "platform/simulated_threads.hpp"
#include "runtime/lazy_backend.hpp"
#include "testing/world_backend.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

namespace {

/// No run has timers at so early an instant, so that none is due at the start.
constexpr clock::time_point beginning{std::chrono::hours(24)};

fd make_descriptor() {
  fd result(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!result) throw std::system_error(errno, std::system_category(), "eventfd");
  return result;
}

}  // namespace

thread_local simulation* simulation::present_ = nullptr;

simulation::simulation(const plan& how, decisions source, coverage* seen)
    : choices(std::move(source)),
      net(choices),
      storage(choices, net),
      threads(*this),
      time(beginning),
      start(beginning),
      plan_(how),
      occasions_(make_descriptor()),
      seen_(seen) {
  net.on_failure = [this](std::string why) { fail(std::move(why)); };
  enter_thread();
  if (how.how == order::pct) decide_priority_changes();
}

/// They are spread over short and long programs alike.
void simulation::decide_priority_changes() {
  constexpr std::uint32_t magnitudes = 14;
  for (unsigned i = 1; i < plan_.depth; ++i) {
    const std::uint32_t magnitude = 1U << choices.decide(choice::change, magnitudes);
    priority_changes_.push_back(magnitude + choices.decide(choice::change, magnitude));
  }
}

bool simulation::priorities_change() {
  return std::erase_if(priority_changes_, [this](std::size_t step) { return step <= steps_; }) > 0;
}

simulation::~simulation() {
  leave_thread();
}

void simulation::enter_thread() noexcept {
  present_ = this;
  detail::simulated_system::set_present(&net);
  detail::simulated_threads::set_present(&threads);
}

void simulation::leave_thread() noexcept {
  present_ = nullptr;
  detail::simulated_system::set_present(nullptr);
  detail::simulated_threads::set_present(nullptr);
}

std::unique_ptr<backend> simulation::make_backend() {
  options virtual_time;
  virtual_time.backend = "sim";
  return std::make_unique<world_backend>(*this, detail::kernel_for(virtual_time));
}

void simulation::await(occasion what) const {
  io::wait_fd(occasions_.get(), static_cast<short>(what));
}

void simulation::await_time(clock::time_point until) {
  class entry {
   public:
    entry(std::multiset<clock::time_point>& all, clock::time_point until)
        : all_(all), place_(all.insert(until)) {}
    entry(const entry&) = delete;
    entry& operator=(const entry&) = delete;
    ~entry() { all_.erase(place_); }

   private:
    std::multiset<clock::time_point>& all_;
    const std::multiset<clock::time_point>::iterator place_;
  };
  const entry request(awaited_, until);
  while (clock::now() < until) await(occasion::advanced);
}

clock::time_point simulation::next_awaited() const noexcept {
  return awaited_.empty() ? clock::time_point::max() : *awaited_.begin();
}

void simulation::fail(std::string why) {
  if (failure_.empty()) failure_ = std::move(why);
}

std::string text_of(std::exception_ptr failure) {
  try {
    std::rethrow_exception(std::move(failure));
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception";
  }
}

std::string text_of(call_site site) {
  if (site.line == 0) return "the main function";
  return std::string(site.file) + ":" + std::to_string(site.line);
}

void simulation::end_function() {
  if (function_runs_on()) std::exchange(cancel_function, nullptr)();
}

void simulation::give_up() {
  storage.remove();
  std::fprintf(
      stderr,
      "motet: the simulation failed with seed %llu: %s; its fibers do not end when they are "
      "cancelled\n",
      static_cast<unsigned long long>(plan_.seed), failure_.c_str());
  std::abort();
}

void simulation::step() {
  constexpr std::size_t enough_for_an_end = 100'000;  // or as many as before the failure
  ++steps_;
  if (failed() && ++steps_after_failure_ > std::max(enough_for_an_end, steps_ / 2)) give_up();
  if (steps_ >= plan_.steps)
    fail("the limit of " + std::to_string(plan_.steps) + " steps was reached");
}

void simulation::report_difference(call_site site) {
  if (!choices.difference().has_value()) return;
  fail("the run differs from the log: " + *choices.difference() + ", in the fiber of " +
       text_of(site));
}

bool simulation::buggify(call_site site) {
  constexpr std::uint32_t rarity = 4;
  if (faults_are_over_) return false;
  const auto [found, is_new] = buggy_.try_emplace({site.file, site.line}, false);
  if (is_new) found->second = choices.decide(choice::buggify, rarity) == 1;
  const bool happens = found->second && choices.decide(choice::buggify, rarity) == 1;
  if (seen_ != nullptr) seen_->add_site(text_of(site), happens);
  return happens;
}

void simulation::end_faults() {
  faults_are_over_ = true;
  net.heal();
  net.rules.losses = 0;
  net.rules.duplicates = 0;
  net.rules.resets = 0;
  storage.rules.errors = 0;
}

outcome simulation::result(clock::duration span) const {
  const decision_log log{choices.made()};
  if (seen_ != nullptr) {
    for (const decision& each : log.made) seen_->add(each);
  }
  return {!failed(), failure_, plan_.seed, text_of(log), log.made.size(), steps_, span};
}

bool buggify(call_site site) {
  simulation* const inside = simulation::present();
  return inside != nullptr && inside->buggify(site);
}

}}}  // namespace motet::MOTET_ABI::testing
