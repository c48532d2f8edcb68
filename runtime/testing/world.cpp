// SPDX-License-Identifier: MIT
// See motet/testing.hpp.
#include <algorithm>
#include <exception>
#include <motet/base/version.hpp>
#include <motet/fibers/fiber.hpp>
#include <motet/fibers/group.hpp>
#include <motet/runtime/options.hpp>
#include <motet/runtime/run.hpp>
#include <motet/testing.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/saturating_time.hpp"
#include "base/version_text.hpp"
#include "core/thread_state.hpp"
#include "testing/run_by.hpp"
#include "testing/simulation.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

void world::until_idle() {
  inside_.await(occasion::idle);
}

void world::advance(clock::duration span) {
  if (span < clock::duration(0))
    throw std::invalid_argument("world::advance() needs a span that is not negative");
  until_idle();
  inside_.await_time(detail::deadline_after(clock::now(), span));
  until_idle();
}

void world::always(std::function<bool()> condition, call_site site) {
  inside_.invariants.push_back({std::move(condition), site});
}

/// Time passes to the next timer as long as the condition does not hold.
void world::eventually(const std::function<bool()>& condition, clock::duration limit,
                       call_site site) {
  inside_.end_faults();
  const clock::time_point end = detail::deadline_after(clock::now(), limit);
  for (until_idle(); !condition(); until_idle()) {
    if (clock::now() >= end) {
      inside_.fail("the condition of " + text_of(site) + " did not hold in time");
      detail::here().deliver();
    }
    detail::thread_state& home = detail::here();
    const detail::timer* const next = home.time.first();
    clock::time_point until =
        std::min({end, inside_.net.next_event(), inside_.threads.end_of_sleep()});
    if (next != nullptr) until = std::min(until, next->due);
    inside_.await_time(until);
  }
}

std::uint32_t world::random(std::uint32_t count) {
  if (count == 0) throw std::invalid_argument("world::random() needs a count of at least 1");
  return inside_.choices.decide(choice::program, count);
}

namespace {

using detail::thread_state;

/// Invariants refer to what the function has in its frame.
class end_of_invariants {
 public:
  explicit end_of_invariants(simulation& inside) noexcept : inside_(inside) {}
  end_of_invariants(const end_of_invariants&) = delete;
  end_of_invariants& operator=(const end_of_invariants&) = delete;
  ~end_of_invariants() { inside_.invariants.clear(); }

 private:
  simulation& inside_;
};

/// A second fiber waits forever, so the thread always has a pending operation and polls.
void run_function(simulation& inside, const std::function<void(world&)>& function) {
  world surroundings = inside.surroundings();
  group watch;
  watch.spin([&] { inside.await(occasion::never); });
  const call_site of_function{};
  fiber<void> body = spin(
      [&] {
        const end_of_invariants guard(inside);
        function(surroundings);
      },
      of_function);
  inside.cancel_function = [&] { body.cancel(); };
  try {
    body.await();
  } catch (...) {
    inside.fail("the function threw: " + text_of(std::current_exception()));
  }
  inside.cancel_function = nullptr;
  if (const std::optional<call_site> maker = inside.net.left_open(inside.net.first_home()))
    inside.fail("the function left a socket open, made by the fiber of " + text_of(*maker));
  watch.cancel();
}

/// Threads whose objects were destroyed on themselves end alone.
void await_threads(simulation& inside) {
  while (inside.threads.has_others()) {
    inside.await(occasion::idle);
    const std::optional<call_site> maker = inside.threads.maker_of_other();
    if (!maker.has_value()) return;
    const clock::time_point next = std::min(inside.threads.end_of_sleep(), inside.net.next_event());
    if (next - inside.start > inside.settings().horizon) {
      inside.fail("the function left a thread running, made by the fiber of " + text_of(*maker));
      inside.give_up();
    }
    inside.await_time(next);
  }
}

}  // namespace

outcome run(const plan& how, const std::function<void(world&)>& function) {
  return run_by(how, decisions(how.seed, how.log.empty() ? decision_log() : log_of(how.log)),
                function);
}

outcome run_by(const plan& how, decisions source, const std::function<void(world&)>& function,
               coverage* seen) {
  const thread_state* const former = detail::self();
  if (const char* const reason = former == nullptr ? nullptr : former->in_use())
    throw std::logic_error(std::string("testing::run() cannot begin here: ") + reason);
  const std::string own_version = detail::version_text;
  if (motet::version() != own_version)
    throw std::logic_error("motet-testing " + own_version + " needs that version of motet, not " +
                           motet::version());
  if (how.depth == 0) throw std::invalid_argument("testing::run() needs a depth of at least 1");
  simulation inside(how, std::move(source), seen);
  clock::duration span{};
  options settings;
  inside.threads.prepare(settings);
  motet::run(settings, [&] {
    inside.threads.adopt(detail::here());
    run_function(inside, function);
    await_threads(inside);
    span = clock::now() - inside.start;
  });
  outcome result = inside.result(span);
  if (seen != nullptr) seen->add(result);
  return result;
}

}}}  // namespace motet::MOTET_ABI::testing
