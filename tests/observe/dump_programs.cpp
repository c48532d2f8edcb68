// SPDX-License-Identifier: MIT
// Small programs that dump their fibers; dump_test.py runs each by name and reads what it writes.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <motet/motet.hpp>
#include <motet/observe/debug.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "support.hpp"

using namespace std::chrono_literals;

namespace {

/// Returns: the options of a thread that may wait for others as long as it likes.
motet::options patient() {
  motet::options config;
  config.deadlock_report = 0ms;
  return config;
}

}  // namespace

// Found by their names in stacks; what stands behind a call keeps it from becoming a jump.
extern "C" {

[[gnu::noinline]] void sleeps_soundly() {
  motet::sleep_for(1h);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

[[gnu::noinline]] void calls_a_sleeper() {
  sleeps_soundly();
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

[[gnu::noinline]] void reads_for_ever(int fd) {
  std::byte byte{};
  motet::io::read(fd, {&byte, 1});
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

[[gnu::noinline]] void goes_down(int levels) {
  if (levels == 0) {
    motet::suspend();
  } else {
    goes_down(levels - 1);
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

[[gnu::noinline]] void dumps(const motet::dump_options& options) {
  motet::dump(std::cout, options);
  std::cout << std::flush;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}
}

namespace {

/// Fibers of each kind, on this thread: a sleeper, a reader, a deep one, one that waits while an
/// exception is in flight, one that has not begun.
template <typename F>
void among_several(F tell) {
  const auto pair = testing::make_socket_pair();
  motet::group several;
  several.spin({.name = "sleeper"}, calls_a_sleeper);
  several.spin({.name = "a \"reader\"\n"}, [&] { reads_for_ever(pair.first()); });
  several.spin({.name = "deep"}, [] { goes_down(200); });
  several.spin({.name = "thrown"}, [] {
    try {
      throw std::runtime_error("down");
    } catch (const std::runtime_error&) {
      calls_a_sleeper();
    }
  });
  for (int i = 0; i < 3; ++i) motet::snooze();
  several.spin({.name = "newcomer"}, [] {});
  tell();
  several.cancel();
  several.await_all();
}

void stacks() {
  motet::run(patient(), [] { among_several([] { dumps({.stacks = true}); }); });
}

void json() {
  motet::run(patient(), [] { among_several([] { dumps({.stacks = true, .json = true}); }); });
}

void crowd() {
  motet::run(patient(), [] {
    motet::group several;
    for (int i = 0; i < 3'000; ++i) several.spin(calls_a_sleeper);
    motet::snooze();
    for (int i = 0; i < 5; ++i) several.spin([] {});
    dumps({.stacks = true, .group_by_site = true});
    dumps({.stacks = true, .group_by_site = true, .json = true});
    several.cancel();
    several.await_all();
  });
}

/// A thread that sleeps, one that switches, and with `busy` one that computes.
void in_threads(bool busy, const motet::dump_options& options) {
  std::atomic<bool> stop{false};
  std::atomic<int> started_fibers{0};
  std::vector<std::thread> threads;
  const auto add = [&](auto body) {
    threads.emplace_back([&, body] {
      motet::run(patient(), [&] {
        ++started_fibers;
        body();
      });
    });
  };
  add([&] {
    motet::spin({.name = "dozer"}, calls_a_sleeper);
    while (!stop) motet::sleep_for(1ms);
    for (const auto& child : motet::current().children()) child.cancel();
  });
  add([&] {
    motet::spin({.name = "busy"}, [&] {
      while (!stop) motet::snooze();
    }).await();
  });
  if (busy) {
    add([&] {
      motet::spin({.name = "hog"}, [&] {
        while (!stop) std::this_thread::sleep_for(1ms);
      }).await();
    });
  }
  while (started_fibers < static_cast<int>(threads.size())) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(20ms);
  motet::run(patient(), [&] {
    dumps(options);
    stop = true;
  });
  for (std::thread& thread : threads) thread.join();
}

void threads() {
  in_threads(true, {.stacks = true, .all_threads = true});
}

void threads_as_json() {
  in_threads(true, {.stacks = true, .all_threads = true, .json = true});
}

/// Two threads ask one another, and threads end meanwhile.
void ask_one_another() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([] {
      for (int round = 0; round < 30; ++round) {
        motet::run(patient(), [] {
          const auto sleeper = motet::spin(calls_a_sleeper);
          motet::snooze();
          std::ostringstream stream;
          motet::dump(stream, {.stacks = true, .all_threads = true});
          if (stream.str().find("sleeps_soundly") == std::string::npos) std::abort();
          sleeper.cancel();
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::cout << "done\n";
}

/// On a thread without a runtime.
void nothing() {
  dumps({});
  dumps({.stacks = true, .json = true});
}

const std::map<std::string_view, void (*)()> programs = {
    {"stacks", stacks},
    {"json", json},
    {"crowd", crowd},
    {"threads", threads},
    {"nothing", nothing},
    {"threads_as_json", threads_as_json},
    {"ask_one_another", ask_one_another},
};

}  // namespace

int main(int count, char** words) {
  const auto program = count == 2 ? programs.find(words[1]) : programs.end();
  if (program == programs.end()) return 64;
  program->second();
}
