// SPDX-License-Identifier: MIT
// Threads of simulated worlds that wait for one another, for the operating system, and for the end:
// none is forgotten, and nothing runs when its turn is over.
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <motet/motet.hpp>
#include <motet/net.hpp>
#include <motet/testing.hpp>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "io/scratch.hpp"
#include "support.hpp"
#include "testing/simulations.hpp"
#include "threads/idle_thread.hpp"

namespace {

using namespace motet;
using namespace std::chrono_literals;
using motet::testing::host;
using motet::testing::order;
using motet::testing::outcome;
using motet::testing::plan;
using motet::testing::world;
using ::testing::passes;
using ::testing::require;
using ::testing::on_threads::idle_thread;

/// Fails if more than a few steps are needed.
outcome run_briefly(plan how, const std::function<void(world&)>& function) {
  how.steps = 20'000;
  how.horizon = 1min;
  return motet::testing::run(how, function);
}

std::vector<int> ends;  // in their order

struct at_end {
  int number = 0;
  ~at_end() {
    std::this_thread::sleep_for(20ms);
    ends.push_back(number);
  }
};
thread_local at_end last;

void wait_in_a_loop(world&) {
  bool flag = false;
  const thread other([&] {
    while (!flag) snooze();
  });
  snooze();
  flag = true;
  other.await();
}

}  // namespace

TEST_CASE("world::advance() and until_idle() on several threads end in order") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const outcome result =
        run_briefly({.seed = seed, .time = motet::testing::time_mode::stands}, [](world& in) {
          const clock::time_point start = clock::now();
          const thread other([&] {
            in.advance(1s);
            require(clock::now() - start < 2s, "the shorter span ends first");
            in.until_idle();
          });
          in.advance(5s);
          other.await();
        });
    INFO("seed " << seed << ": " << result.failure);
    CHECK(result.passed);
  }
}

TEST_CASE("thread: a loop of snooze() lets other threads run, with a log of zeros as well") {
  const plan zeros{.log = "motet decisions 1, then 0\n"};
  CHECK(run_briefly(zeros, wait_in_a_loop).failure.empty());
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    for (const auto how : {order::any, order::pct})
      CHECK(run_briefly({.seed = seed, .how = how}, wait_in_a_loop).failure.empty());
  }
}

TEST_CASE("thread: time passes for others while it calls snooze() in a loop") {
  const auto loop = [](world&) {
    bool flag = false;
    const thread other([&] {
      const clock::time_point end = clock::now() + 100us;
      while (clock::now() < end || !flag) snooze();
    });
    sleep_for(50us);
    flag = true;
    other.await();
  };
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    for (const auto how : {order::open, order::any, order::pct})
      CHECK(run_briefly({.seed = seed, .how = how}, loop).failure.empty());
  }
}

TEST_CASE("order::pct: a thread and its maker have priorities of their own") {
  int first = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    run_briefly({.seed = seed, .how = order::pct, .depth = 1}, [&](world&) {
      event go;
      bool has_run = false;
      const thread other([&] {
        go.wait();
        has_run = true;
      });
      const fiber<void> own = spin([&] {
        go.wait();
        if (!has_run) ++first;
      });
      sleep_for(1ms);
      go.set();
      own.await();
      other.await();
    });
  }
  CHECK(first > 10);
  CHECK(first < 90);
}

TEST_CASE("fork(): a child of a simulation with threads goes on alone") {
  const outcome result = run_briefly({}, [](world&) {
    thread other = idle_thread();
    const pid_t child = ::fork();
    if (child == 0) {
      snooze();
      ::_exit(7);
    }
    int status = 0;
    require(::waitpid(child, &status, 0) == child, "the child ends");
    require(WIFEXITED(status) && WEXITSTATUS(status) == 7, "by itself");
  });
  CHECK(result.failure.empty());
}

TEST_CASE("io::read() of a pipe ends while other threads are busy") {
  const outcome result = run_briefly({}, [](world&) {
    auto pipe = ::testing::make_pipe();
    bool is_read = false;
    const thread reader([&] {
      std::byte one{};
      require(io::read(pipe.first(), std::span(&one, 1)) == 1, "it came");
      is_read = true;
    });
    const std::byte one{7};
    io::write(pipe.second(), std::span(&one, 1));
    while (!is_read) snooze();
    reader.await();
  });
  CHECK(result.failure.empty());
}

TEST_CASE("file::read() of a real file ends beside other threads") {
  const ::testing::scratch_directory directory;
  const std::string path = directory.name() + "/file";
  const outcome result = run_briefly({}, [&](world&) {
    thread other = idle_thread();
    file written = file::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    written.write_all("text");
    other.call([&] {
      std::byte buffer[10];
      require(file::open(path, O_RDONLY).read(buffer) == 4, "all is read");
    });
  });
  CHECK(result.failure.empty());
}

TEST_CASE("net::udp_socket: one that another thread destroys ends a wait for it, or leaves it") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const outcome result = run_briefly({.seed = seed}, [](world& in) {
      std::optional<net::udp_socket> socket(net::endpoint::parse("127.0.0.1:80"));
      const int number = socket->native_handle();
      const thread other([&, number] {
        try {
          move_on_after(std::chrono::microseconds(1 + in.random(5)),
                        [&] { io::wait_fd(number, POLLIN); });
        } catch (const std::system_error&) {
        }
      });
      sleep_for(std::chrono::microseconds(in.random(6)));
      for (std::uint32_t i = in.random(3); i > 0; --i) snooze();
      socket.reset();
      other.await();
    });
    INFO("seed " << seed << ": " << result.failure);
    REQUIRE(result.passed);
  }
}

TEST_CASE("thread, thread_pool: those destroyed on their own threads end in virtual time") {
  CHECK(run_briefly({}, [](world&) {
          auto other = std::make_shared<std::optional<thread>>();
          other->emplace([other] {
            other->reset();
            sleep_for(1ms);
          });
        }).failure.empty());
  CHECK(run_briefly({}, [](world&) {
          auto pool = std::make_shared<std::optional<thread_pool>>(std::in_place, 2U);
          (*pool)->post([pool] {
            sleep_for(1ms);
            pool->reset();
            sleep_for(1ms);
          });
        }).failure.empty());
}

TEST_CASE("thread: one that can never end fails the simulation at once") {
  const auto begin = std::chrono::steady_clock::now();
  const outcome result = run_briefly({}, [](world&) {
    event never;
    const thread other([&] {
      spin([&] { shield([&] { never.wait(); }); });
      snooze();
    });
    try {
      other.await();
    } catch (const cancelled&) {
      never.set();
      throw;
    }
  });
  CHECK(result.failure == "every fiber waits, and no timer is set");
  CHECK(std::chrono::steady_clock::now() - begin < 30s);
}

TEST_CASE("thread: its thread-locals are destroyed before another thread runs") {
  ends.clear();
  CHECK(run_briefly({}, [](world& in) {
          const thread other([] { last.number = 1; });
          other.await();
          sleep_for(1ms);
          in.until_idle();
          ends.push_back(2);
        }).failure.empty());
  CHECK(ends == std::vector{1, 2});
}

TEST_CASE("world::crash() ends the jobs of the host's pool") {
  passes([](world& in) {
    bool goes_on = false;
    host server = in.add("server", [&] {
      thread_pool pool(2);
      for (int i = 0; i < 3; ++i) {
        pool.post([&] {
          for (;;) {
            goes_on = true;
            sleep_for(10ms);
          }
        });
      }
      sleep();
    });
    sleep_for(in.random(3) * 1ms);
    in.crash(server);
    goes_on = false;
    sleep_for(1s);
    require(!goes_on, "no job goes on");
  });
}

TEST_CASE("portal: a deadline is not late after many hops") {
  CHECK(run_briefly({}, [](world&) {
          thread other = idle_thread();
          const clock::time_point start = clock::now();
          move_on_after(10ms, [&] {
            for (int i = 0; i < 1'000; ++i) const portal open(other);
            sleep_for(1h);
          });
          require(clock::now() - start < 10'100us, "the deadline is the one that was set");
        }).failure.empty());
}

TEST_CASE("world: a socket that a thread leaves open is reported with the thread's maker") {
  static std::optional<net::udp_socket> kept;
  const outcome result = run_briefly({}, [](world& in) {
    const host left = in.add("left", [] {
      spin([] {
        const thread other([] { kept.emplace(net::endpoint::parse("0.0.0.0:80")); });
        other.await();
      }).await();
    });
    sleep_for(1s);
  });
  kept.reset();
  CHECK(result.failure.find("left a socket open") != std::string::npos);
  CHECK(result.failure.find("thread_ends_test.cpp") != std::string::npos);
}
