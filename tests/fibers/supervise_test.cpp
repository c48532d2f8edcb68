// SPDX-License-Identifier: MIT
// Children that are started again: when, with whom, how often, and what is told of it.
#include <chrono>
#include <functional>
#include <memory>
#include <motet/fibers/supervise.hpp>
#include <motet/motet.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::on_virtual_time;
using testing::words;
using kind = supervise_event::kind;

namespace {

struct flaky : std::runtime_error {
  flaky() : std::runtime_error("flaky") {}
};

/// Restarts at once, and often.
supervise_options quick() {
  supervise_options options;
  options.restarts = 100;
  options.delay = 0ms;
  options.jitter = 0;
  return options;
}

std::string text_of(const supervise_event& event) {
  switch (event.what) {
    case kind::started:
      return event.child + " started";
    case kind::ended:
      return event.child + " ended";
    case kind::failed:
      return event.child + " failed";
    case kind::restarting:
      return event.child + " in " + std::to_string(event.delay / 1ms) + " ms";
    case kind::gave_up:
      return event.child + " given up";
  }
  return "";
}

auto into(words& trace) {
  return [&trace](const supervise_event& event) { trace.push_back(text_of(event)); };
}

/// Notes a word when its frame is left.
struct leaving {
  words& trace;
  std::string word;
  ~leaving() { trace.push_back(word); }
};

/// Sleeps until it is ended, and says so.
auto endless(words& trace, std::string name) {
  return [&trace, name] {
    const leaving frame{trace, name + " left"};
    sleep();
  };
}

}  // namespace

TEST_CASE("supervise() restarts a child that fails until it returns", "[supervise]") {
  run([] {
    std::vector<int> runs;
    int count = 0;
    supervise(quick(),
              child_spec{.name = "flaky", .restart = restart_policy::on_failure, .make = [&] {
                           runs.push_back(++count);
                           if (count < 3) throw flaky();
                         }});
    CHECK(runs == std::vector<int>{1, 2, 3});
    snooze();
  });
}

TEST_CASE("supervise() starts a new fiber of the same name each time, made by the factory",
          "[supervise]") {
  run([] {
    std::vector<fiber_ref> fibers;
    int factory_calls = 0;
    child_spec spec{.name = "worker", .restart = restart_policy::on_failure};
    spec.make = [&] {
      const int number = ++factory_calls;
      fibers.push_back(current());
      return [&fibers, payload = std::make_unique<int>(number)] {
        CHECK(current() == fibers.back());
        if (*payload < 3) throw flaky();
      };
    };
    supervise(quick(), spec);
    CHECK(factory_calls == 3);
    REQUIRE(fibers.size() == 3);
    CHECK(!(fibers[0] == fibers[1]));
    for (const fiber_ref& child : fibers) CHECK(child.name() == "worker");
  });
}

TEST_CASE("supervise(): the restart policy decides which ends cause a restart", "[supervise]") {
  run([] {
    const auto runs = [](restart_policy policy, auto how_it_ends) {
      int count = 0;
      supervise_options options = quick();
      options.restarts = 3;
      try {
        supervise(options, child_spec{.restart = policy, .make = [&] {
                                        ++count;
                                        how_it_ends();
                                      }});
      } catch (const too_many_restarts&) {
      }
      return count;
    };
    const auto fails = [] { throw 7; };
    const auto returns = [] {};
    const auto is_cancelled = [] {
      current().cancel();
      sleep();
    };
    CHECK(runs(restart_policy::never, fails) == 1);
    CHECK(runs(restart_policy::never, returns) == 1);
    CHECK(runs(restart_policy::on_failure, fails) == 4);
    CHECK(runs(restart_policy::on_failure, returns) == 1);
    CHECK(runs(restart_policy::on_failure, is_cancelled) == 1);
    CHECK(runs(restart_policy::always, fails) == 4);
    CHECK(runs(restart_policy::always, returns) == 4);
    CHECK(runs(restart_policy::always, is_cancelled) == 4);
  });
}

TEST_CASE("supervise() treats a cancellation from another fiber as a failure", "[supervise]") {
  run([] {
    int count = 0;
    supervise(quick(), child_spec{.restart = restart_policy::on_failure, .make = [&] {
                                    if (++count > 1) return;
                                    auto outsider = spin([] { sleep(); });
                                    outsider.cancel();
                                    outsider.await();
                                  }});
    CHECK(count == 2);
  });
}

TEST_CASE("supervise() treats failures of a child's own children as the child's failure",
          "[supervise]") {
  run([] {
    int count = 0;
    words trace;
    supervise_options options = quick();
    options.on_event = into(trace);
    supervise(options, child_spec{.name = "a", .restart = restart_policy::on_failure, .make = [&] {
                                    if (++count > 1) return;
                                    spin([] {
                                      try {
                                        sleep();
                                      } catch (const cancelled&) {
                                        throw flaky();
                                      }
                                    });
                                    snooze();
                                  }});
    CHECK(trace == words{"a started", "a failed", "a in 0 ms", "a started", "a ended"});
  });
}

TEST_CASE("supervise(): one_for_one restarts only the failed child", "[supervise]") {
  on_virtual_time([] {
    words trace;
    supervise_options options = quick();
    options.on_event = into(trace);
    int count = 0;
    const auto done = move_on_after(10ms, [&] {
      supervise(options, child_spec{.name = "a", .make = endless(trace, "a")},
                child_spec{.name = "b",
                           .restart = restart_policy::on_failure,
                           .make =
                               [&] {
                                 if (++count == 1) throw flaky();
                               }},
                child_spec{.name = "c", .make = endless(trace, "c")});
    });
    CHECK(!done);
    CHECK(trace == words{"a started", "b started", "c started", "b failed", "b in 0 ms",
                         "b started", "b ended", "c left", "a left"});
  });
}

TEST_CASE("supervise(): one_for_all ends all children in reverse order and restarts them in order",
          "[supervise]") {
  on_virtual_time([] {
    words trace;
    supervise_options options = quick();
    options.strategy = restart_strategy::one_for_all;
    options.delay = 5ms;
    options.on_event = into(trace);
    int count = 0;
    const auto done = move_on_after(20ms, [&] {
      supervise(
          options, child_spec{.name = "a", .make = endless(trace, "a")},
          child_spec{.name = "b",
                     .make =
                         [&] {
                           sleep_for(1ms);
                           if (++count == 1) throw flaky();
                           sleep();
                         }},
          child_spec{.name = "c", .restart = restart_policy::never, .make = endless(trace, "c")},
          child_spec{.name = "d", .restart = restart_policy::never, .make = [] {}},
          child_spec{
              .name = "e", .restart = restart_policy::on_failure, .make = endless(trace, "e")});
    });
    CHECK(!done);
    CHECK(trace == words{"a started", "b started", "c started", "d started", "e started",
                         "d ended",   "b failed",  "e left",    "e ended",   "c left",
                         "c ended",   "a left",    "a ended",   "a in 5 ms", "b in 5 ms",
                         "e in 5 ms", "a started", "b started", "e started", "e left",
                         "a left"});
  });
}

TEST_CASE("supervise(): rest_for_one restarts the failed child and those after it", "[supervise]") {
  on_virtual_time([] {
    words trace;
    supervise_options options = quick();
    options.strategy = restart_strategy::rest_for_one;
    options.on_event = into(trace);
    int count = 0;
    const auto done = move_on_after(20ms, [&] {
      supervise(options, child_spec{.name = "a", .make = endless(trace, "a")},
                child_spec{.name = "b",
                           .make =
                               [&] {
                                 sleep_for(1ms);
                                 if (++count == 1) throw flaky();
                                 sleep();
                               }},
                child_spec{.name = "c", .make = endless(trace, "c")});
    });
    CHECK(!done);
    CHECK(trace == words{"a started", "b started", "c started", "b failed", "c left", "c ended",
                         "b in 0 ms", "c in 0 ms", "b started", "c started", "c left", "a left"});
  });
}

TEST_CASE("supervise() restarts all children once when several fail together", "[supervise]") {
  on_virtual_time([] {
    supervise_options options = quick();
    options.strategy = restart_strategy::one_for_all;
    options.restarts = 1;
    int left_to_fail = 3;
    int returns = 0;
    const auto fails_once = [&] {
      sleep_for(1ms);
      if (left_to_fail-- > 0) throw flaky();
      ++returns;
    };
    const child_spec spec{.restart = restart_policy::on_failure, .make = fails_once};
    supervise(options, spec, spec, spec);
    CHECK(returns == 3);
  });
}

TEST_CASE("supervise() gives up after too many restarts within the window, and says why",
          "[supervise]") {
  on_virtual_time([] {
    words trace;
    supervise_options options = quick();
    options.restarts = 2;
    options.on_event = into(trace);
    bool notified = false;
    try {
      supervise(options, child_spec{.name = "a", .make = endless(trace, "a")},
                child_spec{.name = "b",
                           .make =
                               [] {
                                 sleep_for(1ms);
                                 throw flaky();
                               }},
                child_spec{.name = "c", .make = endless(trace, "c")});
    } catch (const too_many_restarts& error) {
      notified = true;
      CHECK(error.child() == "b");
      CHECK(std::string(error.what()) == "child b has ended once more after 2 restarts: flaky");
      CHECK_THROWS_AS(std::rethrow_exception(error.cause()), flaky);
    }
    CHECK(notified);
    CHECK(trace == words{"a started", "b started", "c started", "b failed", "b in 0 ms",
                         "b started", "b failed", "b in 0 ms", "b started", "b failed", "c left",
                         "c ended", "a left", "a ended", "b given up"});
    CHECK(current().children().empty());
  });
}

TEST_CASE("supervise() does not count restarts outside of the window", "[supervise]") {
  on_virtual_time([] {
    supervise_options options = quick();
    options.restarts = 2;
    options.window = 1s;
    int count = 0;
    const auto start = clock::now();
    supervise(options, child_spec{.restart = restart_policy::on_failure, .make = [&] {
                                    sleep_for(500ms);
                                    if (++count < 20) throw flaky();
                                  }});
    CHECK(count == 20);
    CHECK(clock::now() - start == 10s);
    options.restarts = 0;
    CHECK_THROWS_AS(supervise(options, child_spec{.make = [] {}}), too_many_restarts);
  });
}

TEST_CASE("supervise() doubles the delay up to its limit, and resets it after a good run",
          "[supervise]") {
  on_virtual_time([] {
    std::vector<std::int64_t> delays;
    supervise_options options = quick();
    options.window = 1s;
    options.delay = 10ms;
    options.longest_delay = 70ms;
    options.on_event = [&](const supervise_event& event) {
      if (event.what == kind::restarting) delays.push_back(event.delay / 1ms);
    };
    int count = 0;
    const auto start = clock::now();
    supervise(options, child_spec{.restart = restart_policy::on_failure, .make = [&] {
                                    if (++count == 6) sleep_for(1s);
                                    if (count < 8) throw flaky();
                                  }});
    CHECK(delays == std::vector<std::int64_t>{10, 20, 40, 70, 70, 10, 20});
    CHECK(clock::now() - start == 1240ms);
  });
}

TEST_CASE("supervise(): jitter shortens each delay at random", "[supervise]") {
  on_virtual_time([] {
    supervise_options options = quick();
    options.delay = options.longest_delay = 100ms;
    options.jitter = 0.5;
    std::size_t outliers = 0;
    std::size_t shorter = 0;
    options.on_event = [&](const supervise_event& event) {
      if (event.what != kind::restarting) return;
      outliers += event.delay < 50ms || event.delay > 100ms ? 1 : 0;
      shorter += event.delay < 99ms ? 1 : 0;
    };
    int count = 0;
    supervise(options, child_spec{.restart = restart_policy::on_failure, .make = [&] {
                                    if (++count < 50) throw flaky();
                                  }});
    CHECK(outliers == 0);
    CHECK(shorter > 0);
  });
}

TEST_CASE("supervise() ends its children when it is cancelled, the youngest first", "[supervise]") {
  on_virtual_time([] {
    words trace;
    auto supervisor = spin([&] {
      words log;
      const auto child = [&](std::string name) {
        return [&, name] {
          try {
            sleep();
          } catch (const cancelled&) {
            sleep_for(10ms);
            log.push_back(name);
            trace.push_back(log.back());
            throw;
          }
        };
      };
      supervise(quick(), child_spec{.make = child("a")}, child_spec{.make = child("b")},
                child_spec{.make = child("c")});
    });
    sleep_for(5ms);
    supervisor.cancel();
    CHECK_THROWS_AS(supervisor.await(), fiber_cancelled);
    CHECK(trace == words{"c", "b", "a"});
  });
}

TEST_CASE("supervise() starts no child if it is cancelled before", "[supervise]") {
  run([] {
    bool begun = false;
    auto supervisor = spin([&] { supervise(quick(), child_spec{.make = [&] { begun = true; }}); });
    snooze();
    supervisor.cancel();
    CHECK_THROWS_AS(supervisor.await(), fiber_cancelled);
    CHECK(!begun);
  });
}

TEST_CASE("supervise() ends all children and throws when on_event throws", "[supervise]") {
  run([] {
    words trace;
    supervise_options options = quick();
    options.on_event = [](const supervise_event& event) {
      if (event.what == kind::failed) throw 9;
    };
    int events_thrown = 0;
    try {
      supervise(options, child_spec{.make = endless(trace, "a")}, child_spec{.make = [] {
                  snooze();
                  throw flaky();
                }});
    } catch (int error) {
      events_thrown = error;
    }
    CHECK(events_thrown == 9);
    CHECK(trace == words{"a left"});
  });
}

TEST_CASE("supervise() accepts a range of specs with owning factories", "[supervise]") {
  run([] {
    int sum = 0;
    std::vector<child_spec> specs;
    for (int i = 1; i <= 3; ++i) {
      specs.push_back({.restart = restart_policy::never,
                       .make = [&sum, payload = std::make_unique<int>(i)] { sum += *payload; }});
    }
    supervise({}, std::move(specs));
    CHECK(sum == 6);
  });
}

TEST_CASE("supervise() refuses invalid options before it starts a child", "[supervise]") {
  run([] {
    bool started = false;
    const child_spec good{.make = [&] { started = true; }};
    const auto refused = [&](auto change) {
      supervise_options options;
      change(options);
      CHECK_THROWS_AS(supervise(options, good), std::invalid_argument);
    };
    CHECK_THROWS_AS(supervise({}), std::invalid_argument);
    CHECK_THROWS_AS(supervise({}, good, child_spec{}), std::invalid_argument);
    CHECK_THROWS_AS(supervise({}, child_spec{.make = std::function<void()>()}),
                    std::invalid_argument);
    refused([](supervise_options& options) { options.window = 0ms; });
    refused([](supervise_options& options) { options.window = -1ms; });
    refused([](supervise_options& options) { options.delay = -1ms; });
    refused([](supervise_options& options) { options.longest_delay = options.delay - 1ns; });
    refused([](supervise_options& options) { options.jitter = -0.1; });
    refused([](supervise_options& options) { options.jitter = 1.1; });
    CHECK(!started);
  });
}

TEST_CASE("supervise() ends when all of its children are cancelled", "[supervise]") {
  run([] {
    auto boss = spin([] {
      supervise({.restarts = 0},
                child_spec{.name = "a", .restart = restart_policy::never, .make = [] { sleep(); }});
    });
    for (int i = 0; i < 3; ++i) snooze();
    for (auto& child : boss.children()) child.cancel();
    CHECK(move_on_after(10s, [&] { boss.await(); }));
  });
}

TEST_CASE("supervise() ends when its children are cancelled before they start", "[supervise]") {
  run([] {
    auto boss = spin([] {
      supervise({.restarts = 0},
                child_spec{.name = "a", .restart = restart_policy::never, .make = [] { sleep(); }});
    });
    while (boss.children().empty()) snooze();
    for (auto& child : boss.children()) child.cancel();
    CHECK(move_on_after(10s, [&] { boss.await(); }));
  });
}
