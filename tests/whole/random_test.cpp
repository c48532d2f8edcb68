// SPDX-License-Identifier: MIT
// Random programs of spins, cancellations, shields, time limits, failures, handlers, groups and
// meetings, nested at will, against a model of who may be interrupted where. A failure prints its
// seed; MOTET_TEST_SEED runs that program alone.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <motet/motet.hpp>
#include <random>
#include <string>
#include <vector>

#include "catch.hpp"
#include "support.hpp"
#include "whole/meeting_points.hpp"

using namespace motet;
using namespace std::chrono_literals;

namespace {

struct some_failure {};

constexpr const char* by_another = "another fiber wanted it";

/// Something that can end and then interrupts what is inside; also the body of a fiber.
struct ended_by {
  unsigned number = 0;  // as the line of its call site
  bool was_delivered = false;
  std::uint64_t entered = 0;
  std::uint64_t told_at = 0;
};

/// What a fiber is in, from the outside inwards.
struct frame {
  enum { limit, shield, handler } kind;
  ended_by* cause = nullptr;  // of a limit or handler
  int in_flight = 0;          // exceptions, when it was entered
  clock::time_point due{};    // of a limit; the true one may be a little later
};

struct fiber_model {
  ended_by body;
  std::vector<frame> frames;
  bool was_requested = false;
};

class random_program {
 public:
  explicit random_program(std::uint32_t seed) : random_(seed) {}

  void run_it();

  const std::string& wrong() const { return wrong_; }
  std::size_t steps() const { return steps_; }

 private:
  using model = fiber_model;

  unsigned pick(unsigned limit) { return static_cast<unsigned>(random_() % limit); }
  clock::duration moment(unsigned limit) { return std::chrono::microseconds(pick(limit)); }
  void check(bool holds, const char* otherwise) {
    if (!holds && wrong_.empty()) wrong_ = otherwise;
  }

  bool exhausted() const { return steps_ > 400 || fibers_ > 60; }

  void act(model& me, int depth);
  void one_step(model& me, int depth);
  void wait(model& me);
  void wait_somehow(const model& me);
  void meet_others(const model& me);
  void limited(model& me, int depth);
  void shielded(model& me, int depth);
  void handled(model& me, int depth);
  void cleaned_up(model& me, int depth);
  void grouped(model& me, int depth);
  void bother(model& me);

  void body_of(model& me, int depth, unsigned& of_group);
  bool in_handler_of(const model& me, const ended_by& cause) const;
  bool must_throw(const model& me) const;
  void note(model& me, const cancelled& error);
  template <typename Body>
  fiber_ref spin_in(group& together, model& me, Body body);
  bool outside_reaches(const model& me) const;

  std::minstd_rand random_;
  std::string wrong_;
  std::size_t steps_ = 0;
  unsigned fibers_ = 0;
  unsigned living_ = 0;
  unsigned numbers_ = 0;
  std::uint64_t moments_ = 0;  // counts entries and tellings
  std::vector<std::pair<fiber_ref, model*>> peers_;
  testing::meeting_points points_;
};

bool random_program::in_handler_of(const model& me, const ended_by& cause) const {
  return std::any_of(me.frames.begin(), me.frames.end(), [&](const frame& entry) {
    return entry.kind == frame::handler && entry.cause == &cause;
  });
}

/// Whether something that has been told before must be told again here.
bool random_program::must_throw(const model& me) const {
  const int in_flight = std::uncaught_exceptions();
  std::vector<const ended_by*> visible;  // from the inside outwards
  bool to_the_end = in_flight == 0;
  for (auto entry = me.frames.rbegin(); entry != me.frames.rend(); ++entry) {
    if (entry->kind == frame::handler) continue;
    to_the_end = to_the_end && entry->kind != frame::shield;
    if (entry->in_flight < in_flight || entry->kind == frame::shield) break;
    visible.push_back(entry->cause);
  }
  if (to_the_end) visible.push_back(&me.body);
  std::uint64_t silent_until = 0;
  for (auto entry = visible.rbegin(); entry != visible.rend(); ++entry) {
    if (!(*entry)->was_delivered) continue;
    if (in_handler_of(me, **entry)) {
      silent_until = std::max(silent_until, (*entry)->told_at);
    } else if ((*entry)->entered > silent_until || *entry == &me.body) {
      return true;
    }
  }
  return false;
}

bool random_program::outside_reaches(const model& me) const {
  return std::uncaught_exceptions() == 0 &&
         std::none_of(me.frames.begin(), me.frames.end(),
                      [](const frame& entry) { return entry.kind == frame::shield; });
}

/// What was just thrown, with nothing caught yet but by the caller.
void random_program::note(model& me, const cancelled& error) {
  if (error.reason() == std::string("its time was up")) {
    for (auto entry = me.frames.rbegin(); entry != me.frames.rend(); ++entry) {
      if (entry->kind == frame::handler) continue;
      check(entry->kind != frame::shield, "a time limit outside of a shield reached in");
      if (entry->kind == frame::shield) return;
      if (entry->cause->number != error.asked_at().line) continue;
      check(clock::now() >= entry->due, "a time limit ended early");
      check(!in_handler_of(me, *entry->cause), "a time limit was told in its own handler");
      entry->cause->was_delivered = true;
      entry->cause->told_at = ++moments_;
      return;
    }
    check(false, "a time limit was told that the fiber is not in");
    return;
  }
  check(outside_reaches(me), "a cancellation reached into a shield or a destructor");
  check(!in_handler_of(me, me.body), "a cancellation was told in its own handler");
  if (error.reason() == by_another) check(me.was_requested, "a cancellation that nobody asked for");
  me.body.was_delivered = true;
  me.body.told_at = ++moments_;
}

/// spin() throws in a handler of a cancellation as well, and that is no telling.
template <typename Body>
fiber_ref random_program::spin_in(group& together, model& me, Body body) {
  try {
    return together.spin(std::move(body));
  } catch (const cancelled& error) {
    if (!in_handler_of(me, me.body)) note(me, error);
    throw;
  }
}

/// At the primitives. In a handler of its cancellation the fiber does not spin, which would throw.
void random_program::meet_others(const model& me) {
  auto dice = static_cast<std::uint32_t>(random_());
  if (in_handler_of(me, me.body)) dice -= dice % testing::meeting_points::kinds;
  points_.visit(dice, std::chrono::microseconds(pick(60)), [] { snooze(); });
  snooze();  // some visits are no switchpoints
}

void random_program::wait_somehow(const model& me) {
  switch (pick(8)) {
    case 0:
      sleep_for(moment(60));
      break;
    case 1:
      checkpoint();
      break;
    case 2:
      move_on_after(moment(30), [] { sleep(); });
      break;
    case 3:
      meet_others(me);
      break;
    default:
      snooze();
  }
}

void random_program::wait(model& me) {
  const bool must = must_throw(me);
  try {
    wait_somehow(me);
    check(!must, "what lasts was not told again");
  } catch (const cancelled& error) {
    note(me, error);
    throw;
  } catch (const some_failure&) {
    check(outside_reaches(me), "a failure reached into a shield or a destructor");
    throw;
  }
}

void random_program::limited(model& me, int depth) {
  ended_by own_limit{.number = ++numbers_, .entered = ++moments_};
  const auto span = moment(200);
  const auto due = clock::now() + span;
  const auto body = [&](deadline& limit) {
    me.frames.push_back({frame::limit, &own_limit, std::uncaught_exceptions(), due});
    struct leave {
      model& me;
      ~leave() { me.frames.pop_back(); }
    } leaving{me};
    if (pick(8) == 0 && limit.extend(100us)) me.frames.back().due += 100us;
    act(me, depth - 1);
  };
  const call_site site{"random", own_limit.number};
  const auto size = me.frames.size();
  if (pick(2) == 0) {
    const bool returned = move_on_after(span, body, site);
    check(returned || own_limit.was_delivered, "a call was left by a time limit that was not told");
  } else {
    try {
      with_timeout(span, body, site);
    } catch (const timed_out&) {
      check(own_limit.was_delivered, "timed_out without having been told");
    }
  }
  check(me.frames.size() == size, "a frame was lost");
}

void random_program::shielded(model& me, int depth) {
  shield([&] {
    me.frames.push_back({frame::shield, nullptr, std::uncaught_exceptions(), {}});
    struct leave {
      model& me;
      ~leave() { me.frames.pop_back(); }
    } leaving{me};
    act(me, depth - 1);
  });
}

/// Swallows or rethrows, and waits in the handler.
void random_program::handled(model& me, int depth) {
  try {
    act(me, depth - 1);
  } catch (const cancelled& error) {
    ended_by* cause = &me.body;
    for (const frame& entry : me.frames) {
      const bool matches =
          entry.kind == frame::limit && entry.cause->number == error.asked_at().line;
      if (matches && error.reason() != by_another) cause = entry.cause;
    }
    me.frames.push_back({frame::handler, cause, 0, {}});
    struct leave {
      model& me;
      ~leave() { me.frames.pop_back(); }
    } leaving{me};
    act(me, depth - 2);
    if (pick(2) == 0) throw;
  } catch (const some_failure&) {
    act(me, depth - 2);
    if (pick(2) == 0) throw;
  }
}

/// Waits in a destructor that may run while the fiber unwinds.
void random_program::cleaned_up(model& me, int depth) {
  struct cleaner {
    random_program& program;
    model& me;
    ~cleaner() {
      try {
        shield([&] {
          me.frames.push_back({frame::shield, nullptr, std::uncaught_exceptions(), {}});
          struct leave {
            model& me;
            ~leave() { me.frames.pop_back(); }
          } leaving{me};
          program.wait(me);
        });
        if (std::uncaught_exceptions() > 0) program.wait(me);
      } catch (...) {
        program.check(false, "something was thrown in a destructor");
      }
    }
  } cleaning{*this, me};
  act(me, depth - 1);
}

void random_program::body_of(model& me, int depth, unsigned& of_group) {
  struct count {
    unsigned& living;
    explicit count(unsigned& counter) : living(counter) { ++living; }
    ~count() { --living; }
  } counting(living_), counting_here(of_group);
  const auto forget = [&] {
    std::erase_if(peers_, [&](const auto& peer) { return peer.second == &me; });
  };
  try {
    act(me, depth);
  } catch (...) {
    forget();
    throw;
  }
  forget();
}

void random_program::grouped(model& me, int depth) {
  const unsigned count = 1 + pick(3);
  std::vector<model> children(count);
  unsigned number = 0;
  try {
    group together;
    for (model& child : children) {
      ++fibers_;
      auto spun = spin_in(together, me,
                          [this, &child, &number, depth] { body_of(child, depth - 1, number); });
      peers_.emplace_back(spun, &child);
      if (pick(10) == 0) {
        check(spun.cancel(by_another) == cancel_result::accepted, "a new fiber refused to end");
        child.was_requested = true;
      }
    }
    if (pick(4) == 0) act(me, depth - 1);
    if (pick(3) != 0) {
      const bool must = must_throw(me);
      try {
        together.await_all();
        check(!must, "what lasts was not told again by await_all");
        check(together.size() == 0, "await_all has left somebody");
      } catch (const cancelled& error) {
        note(me, error);
        throw;
      }
    }
  } catch (...) {
    std::erase_if(peers_, [&](const auto& peer) {
      return peer.second >= children.data() && peer.second < children.data() + count;
    });
    throw;
  }
  std::erase_if(peers_, [&](const auto& peer) {
    return peer.second >= children.data() && peer.second < children.data() + count;
  });
  check(number == 0, "a fiber of a group has outlived it");
}

/// Cancels another fiber, or raises something in it.
void random_program::bother(model& me) {
  if (peers_.empty()) return;
  auto& [handle, target] = peers_[pick(static_cast<unsigned>(peers_.size()))];
  if (target == &me) return;
  switch (pick(3)) {
    case 0:
      handle.raise(std::make_exception_ptr(some_failure()));
      break;
    default:
      if (handle.cancel(by_another) != cancel_result::finished) target->was_requested = true;
  }
}

void random_program::one_step(model& me, int depth) {
  ++steps_;
  const unsigned choice = exhausted() || depth <= 0 ? 0 : pick(16);
  if (choice < 6) {
    wait(me);
  } else if (choice < 8) {
    limited(me, depth);
  } else if (choice < 9) {
    shielded(me, depth);
  } else if (choice < 11) {
    handled(me, depth);
  } else if (choice < 12) {
    cleaned_up(me, depth);
  } else if (choice < 14) {
    grouped(me, depth);
  } else if (choice < 15) {
    bother(me);
  } else if (pick(4) == 0) {
    throw some_failure();
  }
}

void random_program::act(model& me, int depth) {
  for (unsigned remaining = 1 + pick(4); remaining > 0; --remaining) one_step(me, depth);
}

void random_program::run_it() {
  model main_body;
  for (int i = 0; i < 3; ++i) {
    try {
      grouped(main_body, 6);
    } catch (const some_failure&) {
    } catch (const cancelled&) {
      check(false, "the main fiber was cancelled");
    }
  }
  for (bool quiet = false; !quiet;) {
    try {
      suspend();
      quiet = true;
    } catch (const some_failure&) {
    }
  }
  check(living_ == 0, "a fiber is left");
  if (wrong_.empty()) wrong_ = points_.wrong();
}

}  // namespace

TEST_CASE("interrupt_fiber() throws in random programs where the model says, and nowhere else",
          "[random]") {
  options config;
  config.handler_grace = 1h;
  config.on_notice = [](std::string_view) {};
  config.on_unhandled = [](std::exception_ptr) {};
  run(config, [] {
    const char* seed_text = std::getenv("MOTET_TEST_SEED");
    const auto enough = testing::scaled(10'000'000, testing::under_tsan ? 20'000 : 100'000);
    std::uint32_t seed =
        seed_text == nullptr ? 1 : static_cast<std::uint32_t>(std::atoi(seed_text));
    for (std::size_t steps = 0; steps < enough; ++seed) {
      random_program program(seed);
      program.run_it();
      steps += program.steps();
      INFO("seed " << seed);
      REQUIRE(program.wrong() == "");
      if (seed_text != nullptr) break;
    }
  });
}
