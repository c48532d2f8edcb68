// SPDX-License-Identifier: MIT
// Threads of simulated worlds: what they share is in order whichever of them runs next, and a run
// with threads can be repeated.
#include <chrono>
#include <cstddef>
#include <functional>
#include <motet/motet.hpp>
#include <motet/net.hpp>
#include <motet/testing.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "support.hpp"
#include "testing/simulations.hpp"
#include "threads/idle_thread.hpp"

namespace {

using namespace motet;
using namespace std::chrono_literals;
using motet::testing::host;
using motet::testing::order;
using motet::testing::outcome;
using motet::testing::world;
using ::testing::passes;
using ::testing::pause;
using ::testing::require;
using ::testing::on_threads::idle_thread;

void passes_often(const std::function<void(world&)>& function) {
  passes(function,
         ::testing::scaled(100'000, ::testing::under_asan || ::testing::under_tsan ? 20 : 120));
}

/// Returns: the first seed with which a simulation fails; nothing if none does.
std::optional<std::uint64_t> failing_seed(order how, const std::function<void(world&)>& function) {
  constexpr std::uint64_t seeds = 1'000;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    if (!motet::testing::run({.seed = seed, .how = how}, function).passed) return seed;
  }
  return std::nullopt;
}

/// Takes real time.
void compute(std::chrono::microseconds span) {
  const auto end = std::chrono::steady_clock::now() + span;
  while (std::chrono::steady_clock::now() < end) {
  }
}

void work_with_threads(world& in) {
  thread_pool pool(2);
  thread other = idle_thread();
  channel<int> items(1);
  std::vector<future<int>> results;
  for (int i = 0; i < 5; ++i) {
    results.push_back(pool.submit([&, i] {
      sleep_for(pause(in));
      items.push(i);
      return other.call([i] { return i; });
    }));
  }
  const fiber<void> traveller = spin([&] {
    for (int i = 0; i < 3; ++i) {
      const portal open(pool);
      sleep_for(pause(in));
      const portal further(other);
      snooze();
    }
  });
  std::set<int> seen;
  for (int i = 0; i < 5; ++i) seen.insert(*items.pop());
  for (auto& result : results) seen.insert(result.get());
  require(seen.size() == 5, "all came");
  traveller.await();
}

}  // namespace

TEST_CASE("thread: a run with threads can be repeated") {
  for (const order how : {order::open, order::any, order::pct}) {
    std::set<std::string> logs;
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      const outcome first = motet::testing::run({.seed = seed, .how = how}, work_with_threads);
      const outcome again =
          motet::testing::run({.seed = seed, .how = how, .log = first.log}, work_with_threads);
      INFO("seed " << seed << ": " << first.failure << again.failure);
      CHECK(first.passed);
      CHECK(again.passed);
      CHECK(first.log == again.log);
      CHECK(first.steps == again.steps);
      CHECK(first.span == again.span);
      CHECK(first.log.find("\nt ") != std::string::npos);
      logs.insert(first.log);
    }
    CHECK(logs.size() > 25);
  }
}

TEST_CASE("thread: its fibers run in virtual time, which is the same on all threads") {
  passes_often([](world&) {
    const clock::time_point start = clock::now();
    clock::time_point seen{};
    const thread other([&] {
      sleep_for(1s);
      seen = clock::now();
    });
    other.await();
    require(seen - start >= 1s && clock::now() - seen < 1ms, "time is the world's");
  });
}

TEST_CASE("thread: an update that is lost between threads is found") {
  const auto lost_update = [](world&) {
    int count = 0;
    const auto increment = [&] {
      const int read = count;
      snooze();
      count = read + 1;
    };
    {
      const thread first(increment);
      const thread second(increment);
      first.await();
      second.await();
    }
    require(count == 2, "both counted");
  };
  for (const order how : {order::open, order::any, order::pct})
    CHECK(failing_seed(how, lost_update).value_or(1'000) < 100);
}

TEST_CASE("thread::post(): functions of each sender run in order, and none is lost") {
  passes_often([](world& in) {
    std::vector<int> seen[2];
    {
      thread target = idle_thread();
      const auto send = [&](std::vector<int>& place) {
        for (int i = 0; i < 10; ++i) {
          target.post([&place, i] { place.push_back(i); });
          if (in.random(2) == 0) snooze();
        }
      };
      const thread other([&] { send(seen[1]); });
      send(seen[0]);
      other.await();
      target.call([] {});
      target.call([] {});
      sleep_for(1ms);
    }
    const std::vector<int> all{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    require(seen[0] == all && seen[1] == all, "in order");
  });
}

TEST_CASE("thread::spin(): a child that is cancelled at any time ends once, on its thread") {
  passes_often([](world& in) {
    int begun = 0;
    int ended = 0;
    thread other = idle_thread();
    std::vector<fiber<void>> children;
    for (int i = 0; i < 3; ++i) {
      children.push_back(other.spin([&] {
        ++begun;
        try {
          sleep_for(pause(in));
          snooze();
        } catch (const cancelled&) {
          ++ended;
          throw;
        }
        ++ended;
      }));
      sleep_for(pause(in));
      if (in.random(2) == 0) children[in.random(static_cast<std::uint32_t>(i + 1))].cancel();
    }
    for (const auto& each : children) {
      try {
        each.await();
      } catch (const fiber_cancelled&) {
      }
    }
    require(begun == ended, "each child that has begun has ended");
  });
}

TEST_CASE("thread_pool: each job runs once, whichever worker it moves to") {
  passes_often([](world& in) {
    std::multiset<int> calls;
    {
      thread_pool pool(1 + in.random(3));
      for (int i = 0; i < 12; ++i) {
        pool.post([&, i] {
          sleep_for(pause(in));
          calls.insert(i);
          if (i < 4) pool.post([&, i] { calls.insert(100 + i); });
        });
        if (in.random(3) == 0) sleep_for(pause(in));
      }
      pool.drain();
      require(calls.size() == 16, "drain() waits for all");
      pool.post([&] { calls.insert(-1); });
      pool.stop();
    }
    require(calls.size() == 17 && std::set<int>(calls.begin(), calls.end()).size() == 17,
            "each job ran once");
  });
}

TEST_CASE("thread_pool::stop(discard) runs a job or breaks its promise, at any time") {
  passes_often([](world& in) {
    int calls = 0;
    int broken = 0;
    thread_pool pool(2);
    std::vector<future<void>> results;
    for (int i = 0; i < 8; ++i) {
      results.push_back(pool.submit([&] {
        sleep_for(pause(in));
        ++calls;
      }));
    }
    sleep_for(pause(in));
    pool.stop(thread_pool::stop_mode::discard);
    for (auto& each : results) {
      try {
        each.get();
      } catch (const fiber_cancelled&) {
        ++broken;
      }
    }
    require(calls + broken == 8, "each job ran or was cancelled");
  });
}

TEST_CASE("portal: a fiber that is cancelled at any time comes home") {
  passes_often([](world& in) {
    thread_pool pool(2);
    thread other = idle_thread();
    bool ends_at_home = false;
    const auto home = std::this_thread::get_id();
    const fiber<void> traveller = spin([&] {
      try {
        for (int i = 0; i < 5; ++i) {
          const portal open(pool);
          sleep_for(pause(in));
          const portal further(other);
          snooze();
        }
      } catch (const cancelled&) {
      }
      ends_at_home = std::this_thread::get_id() == home;
    });
    sleep_for(pause(in) + pause(in));
    if (in.random(2) == 0) traveller.cancel();
    try {
      traveller.await();
      require(ends_at_home, "it ended at home");
    } catch (const fiber_cancelled&) {
    }
  });
}

TEST_CASE("mutex, condition_variable: fibers of several threads exclude each other") {
  passes_often([](world& in) {
    mutex lock;
    condition_variable changed;
    int inside = 0;
    int turn = 0;
    const auto take_turns = [&](int own) {
      for (int i = 0; i < 3; ++i) {
        std::unique_lock guard(lock);
        while (turn % 3 != own) changed.wait(guard);
        require(++inside == 1, "one at a time");
        sleep_for(pause(in));
        --inside;
        ++turn;
        guard.unlock();
        changed.notify_all();
      }
    };
    {
      const thread second([&] { take_turns(1); });
      const thread third([&] { take_turns(2); });
      take_turns(0);
      second.await();
      third.await();
    }
    require(turn == 9, "all had their turns");
  });
}

TEST_CASE("timeslice_lock, parallel_for(): a slower processor changes nothing") {
  const auto share = [](std::chrono::microseconds slowness) {
    timeslice_lock lock(10us);
    thread_pool pool(2);
    int inside = 0;
    const auto work = [&] {
      const std::lock_guard guard(lock);
      for (int i = 0; i < 5; ++i) {
        require(++inside == 1, "one at a time");
        snooze();
        compute(slowness);
        --inside;
        lock.yield_if_due();
      }
    };
    const fiber<void> first = spin(work);
    const fiber<void> second = spin(work);
    auto third = pool.submit(work);
    std::vector<int> elements(20);
    parallel_for(pool, elements, [&](int& element) {
      compute(slowness);
      ++element;
      snooze();
    });
    require(std::set<int>(elements.begin(), elements.end()) == std::set{1}, "each element once");
    first.await();
    second.await();
    third.get();
  };
  std::set<std::string> logs;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const outcome fast = motet::testing::run({.seed = seed}, [&](world&) { share(0us); });
    const outcome slow =
        motet::testing::run({.seed = seed, .log = fast.log}, [&](world&) { share(50us); });
    INFO("seed " << seed << ": " << fast.failure << slow.failure);
    CHECK(fast.passed);
    CHECK(slow.passed);
    CHECK(slow.log == fast.log);
    CHECK(slow.steps == fast.steps);
    logs.insert(fast.log);
  }
  CHECK(logs.size() > 15);
}

TEST_CASE("tcp_listener::serve(): the workers of a host's pool answer, until it crashes") {
  passes_often([](world& in) {
    std::size_t answers = 0;
    host server = in.add("server", [&] {
      thread_pool pool(2);
      net::tcp_listener listener(net::endpoint::parse("0.0.0.0:80"));
      listener.serve(pool, net::serve_options{}, [&](net::tcp_stream client) {
        std::byte one{};
        while (client.read(std::span(&one, 1)) == 1) client.write_all(std::span(&one, 1));
      });
    });
    in.until_idle();
    for (int round = 0; round < 2; ++round) {
      group clients;
      for (int i = 0; i < 3; ++i) {
        clients.spin([&] {
          try {
            net::tcp_stream stream = net::tcp_stream::connect("server", 80);
            std::byte one{1};
            stream.write_all(std::span(&one, 1));
            with_timeout(1s, [&] { answers += stream.read(std::span(&one, 1)); });
          } catch (const std::system_error&) {
            require(round == 1,
                    "the server answers");  // it may have lost its power, and say nothing
          }
        });
      }
      if (round == 1) {
        sleep_for(in.random(4) * 100us);
        in.crash(server);
      }
      clients.await_all();
      if (round == 0) require(answers == 3, "each client got an answer");
    }
  });
}

TEST_CASE("offload(), pipes: threads of a world use those of the system") {
  passes_often([](world&) {
    auto ends = ::testing::make_pipe();
    thread other([&] {
      const std::byte one{7};
      sleep_for(1ms);
      offload([] {});
      io::write(ends.second(), std::span(&one, 1));
    });
    std::byte read{};
    require(io::read(ends.first(), std::span(&read, 1)) == 1 && read == std::byte{7}, "it came");
    other.await();
  });
}

TEST_CASE("world::until_idle() and advance() wait for the fibers of all threads") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const outcome result = motet::testing::run(
        {.seed = seed, .time = motet::testing::time_mode::stands}, [](world& in) {
          int steps = 0;
          thread other([&] {
            for (; steps < 3; ++steps) snooze();
            sleep_for(1s);
            ++steps;
            sleep_for(1s);
            ++steps;
          });
          in.until_idle();
          require(steps == 3, "until_idle() waited for the other thread");
          in.advance(1s);
          require(steps == 4, "its timer has fired");
          in.advance(2s);
          other.await();
          require(steps == 5, "it has ended");
        });
    INFO("seed " << seed << ": " << result.failure);
    REQUIRE(result.passed);
  }
}

TEST_CASE("world: failures on another thread end the simulation") {
  const auto failure_of = [](const std::function<void(world&)>& function) {
    return motet::testing::run({.steps = 10'000}, function).failure;
  };
  CHECK(failure_of([](world&) {
          const thread other([] { throw std::runtime_error("of the other"); });
          other.await();
        }) == "the function threw: of the other");
  CHECK(failure_of([](world& in) {
          bool holds = true;
          in.always([&] { return holds; });
          thread other = idle_thread();
          other.call([&] {
            holds = false;
            snooze();
          });
        }).find("does not hold") != std::string::npos);
  CHECK(failure_of([](world&) {
          thread other = idle_thread();
          other.call([] {
            for (;;) snooze();
          });
        }) == "the limit of 10000 steps was reached");
  CHECK(failure_of([](world&) {
          thread other = idle_thread();
          event never;
          other.call([&] { never.wait(); });
        }) == "every fiber waits, and no timer is set");
}

TEST_CASE("processors() is the same for simulations on all machines") {
  std::size_t count = 0;
  CHECK(motet::testing::run({}, [&](world&) { count = processors(); }).passed);
  CHECK(count == 4);
}
