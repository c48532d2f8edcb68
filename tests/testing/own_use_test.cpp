// SPDX-License-Identifier: MIT
// The library itself in simulated worlds: whatever the order, and whoever is cancelled at whatever
// instant, nothing is lost and nothing is done twice.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <motet/motet.hpp>
#include <motet/net.hpp>
#include <motet/testing.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <system_error>
#include <vector>

#include "catch.hpp"
#include "support.hpp"
#include "testing/simulations.hpp"

namespace {

using namespace motet;
using namespace std::chrono_literals;
using motet::testing::host;
using motet::testing::world;
using ::testing::passes;
using ::testing::pause;
using ::testing::require;

void passes_often(const std::function<void(world&)>& function) {
  passes(function, ::testing::scaled(100'000, ::testing::under_tsan ? 30 : 300));
}

/// Cancels fibers at random instants until all have ended.
void cancel_some(world& in, std::vector<fiber<void>>& fibers) {
  for (fiber<void>& each : fibers) {
    sleep_for(pause(in));
    if (in.random(2) == 0) each.cancel();
  }
  for (fiber<void>& each : fibers) {
    try {
      each.await();
    } catch (const fiber_cancelled&) {
    }
  }
}

}  // namespace

TEST_CASE("channel: cancelled senders keep their item, cancelled receivers leave it") {
  passes_often([](world& in) {
    channel<int> items(in.random(3));
    std::set<int> sent;
    std::set<int> received;
    int next = 0;
    std::vector<fiber<void>> fibers;
    for (int i = 0; i < 3; ++i) {
      fibers.push_back(spin([&] {
        for (int k = 0; k < 4; ++k) {
          const int item = next++;
          try {
            items.push(item);
          } catch (const channel_closed&) {
            return;
          }
          sent.insert(item);
          sleep_for(pause(in));
        }
      }));
      fibers.push_back(spin([&] {
        for (int k = 0; k < 4; ++k) {
          if (const auto item = items.pop()) require(received.insert(*item).second, "once");
          sleep_for(pause(in));
        }
      }));
    }
    fibers.push_back(spin([&] {
      sleep_for(1ms);
      items.close();
    }));
    fibers.back().await();
    fibers.pop_back();
    cancel_some(in, fibers);
    while (const auto item = items.pop()) require(received.insert(*item).second, "once, too");
    require(received == sent, "what was sent has arrived");
  });
}

TEST_CASE("semaphore: cancelled fibers hold no permit, and none is lost") {
  passes_often([](world& in) {
    semaphore permits(2);
    int inside = 0;
    in.always([&] { return inside <= 2; });
    std::vector<fiber<void>> fibers;
    for (int i = 0; i < 6; ++i) {
      fibers.push_back(spin([&] {
        for (int k = 0; k < 3; ++k) {
          permits.acquire();
          ++inside;
          struct release {
            semaphore& permits;
            int& inside;
            ~release() {
              --inside;
              permits.release();
            }
          } guard{permits, inside};
          sleep_for(pause(in));
        }
      }));
    }
    cancel_some(in, fibers);
    require(permits.try_acquire(2), "both permits are there");
  });
}

TEST_CASE(
    "condition_variable: a cancelled waiter holds the mutex again, and takes no notification") {
  passes_often([](world& in) {
    mutex lock;
    condition_variable changed;
    int tokens = 0;
    int taken = 0;
    int made = 0;
    std::vector<fiber<void>> fibers;
    for (int i = 0; i < 4; ++i) {
      fibers.push_back(spin([&] {
        std::unique_lock hold(lock);
        while (tokens == 0) changed.wait(hold);
        --tokens;
        ++taken;
        if (tokens > 0) changed.notify_one();
      }));
    }
    fiber<void> maker = spin([&] {
      for (int i = 0; i < 4; ++i) {
        sleep_for(pause(in));
        const std::lock_guard hold(lock);
        ++tokens;
        ++made;
        changed.notify_one();
      }
    });
    for (int i = 0; i < 2; ++i) {
      sleep_for(pause(in));
      fibers[in.random(4)].cancel();
    }
    maker.await();
    in.until_idle();
    int waiting = 0;
    for (const fiber<void>& each : fibers) waiting += each.state() == fiber_state::dead ? 0 : 1;
    require(tokens + taken == made, "no token is lost");
    require(waiting == 0 || tokens == 0, "nobody waits beside a token");
    for (fiber<void>& each : fibers) each.cancel();
  });
}

TEST_CASE("with_timeout: it expires in time, and what has ended in time is returned") {
  passes_often([](world& in) {
    group tasks;
    for (int i = 0; i < 5; ++i) {
      tasks.spin([&] {
        const auto work = std::chrono::milliseconds(in.random(20));
        const auto limit = std::chrono::milliseconds(in.random(20));
        const clock::time_point begin = clock::now();
        const bool in_time =
            move_on_after(limit, [&] { move_on_after(100ms, [&] { sleep_for(work); }); });
        const clock::duration duration = clock::now() - begin;
        require(in_time ? work <= limit : limit <= work, "the shorter one wins");
        require(duration < std::min<clock::duration>(work, limit) + 1ms, "and at its time");
      });
    }
    tasks.await_all();
  });
}

TEST_CASE("supervise: children that fail are started again, and none runs twice at once") {
  passes_often([](world& in) {
    int running = 0;
    int done = 0;
    in.always([&] { return running <= 3; });
    const auto child = [&] {
      struct count {
        int& running;
        explicit count(int& all) : running(all) { ++running; }
        ~count() { --running; }
      } guard(running);
      sleep_for(pause(in));
      if (in.random(3) == 0) throw std::runtime_error("a failure");
      ++done;
    };
    const restart_strategy strategies[] = {restart_strategy::one_for_one,
                                           restart_strategy::one_for_all,
                                           restart_strategy::rest_for_one};
    supervise({.strategy = strategies[in.random(3)], .restarts = 1'000},
              child_spec{.name = "a", .restart = restart_policy::on_failure, .make = child},
              child_spec{.name = "b", .restart = restart_policy::on_failure, .make = child},
              child_spec{.name = "c", .restart = restart_policy::on_failure, .make = child});
    require(running == 0 && done >= 3, "all have ended well");
  });
}

TEST_CASE("tcp_listener: a server that drains answers every request that it has accepted") {
  passes_often([](world& in) {
    std::stop_source drain;
    std::size_t accepted = 0;
    std::size_t answered = 0;
    const host server = in.add("server", [&] {
      net::tcp_listener listener(net::endpoint::any(7'000));
      listener.serve({.drain = drain.get_token(), .grace = 1min}, [&](net::tcp_stream peer) {
        ++accepted;
        reader lines(peer);
        while (const auto line = lines.line()) {
          sleep_for(std::chrono::milliseconds(in.random(30)));
          peer.write_all("answer\n");
        }
      });
    });
    sleep_for(1ms);
    group clients;
    for (int i = 0; i < 4; ++i) {
      clients.spin([&] {
        sleep_for(std::chrono::milliseconds(in.random(40)));
        try {
          auto stream = net::tcp_stream::connect("server", 7'000);
          reader lines(stream);
          stream.write_all("question\n");
          const auto line = lines.line();
          if (line == "answer") ++answered;
        } catch (const std::system_error&) {  // it was not accepted any more
        }
      });
    }
    sleep_for(std::chrono::milliseconds(in.random(40)));
    drain.request_stop();
    clients.await_all();
    require(answered == accepted, "an accepted one is answered");
    in.eventually([&] { return !server.running(); }, 2min);
  });
}

/// A program of random steps on shared objects: it ends, and the sums are right.
TEST_CASE("group: random programs end, and what they have counted agrees") {
  passes_often([](world& in) {
    mutex lock;
    semaphore permits(2);
    channel<int> items(2);
    std::size_t pushed = 0;
    std::size_t popped = 0;
    const auto step = [&] {
      switch (in.random(6)) {
        case 0:
          return snooze();
        case 1:
          return sleep_for(pause(in));
        case 2: {
          const std::lock_guard hold(lock);
          return snooze();
        }
        case 3: {
          permits.acquire();
          struct release {
            semaphore& permits;
            ~release() { permits.release(); }
          } guard{permits};
          return sleep_for(pause(in));
        }
        case 4:
          if (move_on_after(10us, [&] {
                items.push(1);
                ++pushed;
              })) {
          }
          return;
        default:
          move_on_after(10us, [&] {
            if (items.pop()) ++popped;
          });
      }
    };
    group tasks;
    for (int i = 0; i < 4; ++i) {
      tasks.spin([&] {
        for (std::uint32_t steps = in.random(10); steps > 0; --steps) step();
      });
    }
    tasks.await_all();
    items.close();
    while (items.pop()) ++popped;
    require(popped == pushed, "each item that was pushed is popped once");
    require(permits.try_acquire(2) && lock.try_lock(), "nothing is held");
    lock.unlock();
  });
}
