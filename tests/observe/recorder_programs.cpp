// SPDX-License-Identifier: MIT
// Small programs with a fault, which record what they do; recorder_test.py runs each by name, in a
// directory of its own, and reads the trace.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <motet/motet.hpp>
#include <motet/observe/trace.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "support.hpp"

using namespace std::chrono_literals;

namespace {

motet::options recorded(std::size_t records = 4096) {
  motet::options config;
  config.trace = {.file = "trace", .records = records};
  config.deadlock_report = 0ms;
  return config;
}

void compute_for(std::chrono::milliseconds length) {
  const auto end = std::chrono::steady_clock::now() + length;
  while (std::chrono::steady_clock::now() < end) {
    std::timespec present{};
    ::clock_gettime(CLOCK_MONOTONIC, &present);
  }
}

/// What the process has recorded until it is killed is in the file.
[[noreturn]] void be_killed() {
  std::fflush(stdout);
  ::kill(::getpid(), SIGKILL);
  std::abort();
}

/// A fiber is woken, and stands behind another one that computes.
void hog() {
  motet::run(recorded(), [] {
    motet::event news;
    motet::group members;
    members.spin({.name = "GET /x"}, [&] { news.wait(); });
    members.spin({.name = "parse_job"}, [&] {
      news.set();
      compute_for(40ms);
    });
    members.await_all();
  });
}

void late_timer() {
  motet::run(recorded(), [] {
    motet::group members;
    members.spin({.name = "sleeper"}, [] { motet::sleep_for(5ms); });
    members.spin({.name = "parse_job"}, [] { compute_for(40ms); });
    members.await_all();
  });
}

/// A plain thread ends the read a while after it has begun.
void blocking_read() {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) std::abort();
  std::atomic<bool> reads{false};
  std::thread writer([&] {
    while (!reads) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(60ms);
    if (::write(ends[1], "x", 1) != 1) std::abort();
  });
  motet::run(recorded(), [&] {
    motet::group members;
    members.spin({.name = "reader"}, [&] {
      char byte = 0;
      reads = true;
      if (::read(ends[0], &byte, 1) != 1) std::abort();
    });
    members.spin({.name = "GET /x"}, [] { motet::snooze(); });
    members.await_all();
  });
  writer.join();
}

/// One fiber has a name for each thing that it does.
void renamed() {
  motet::run(recorded(), [] {
    motet::spin([] {
      for (const char* name : {"GET /quick", "GET /slow", "GET /last"}) {
        motet::current().set_name(name);
        if (std::string_view(name) == "GET /slow") compute_for(20ms);
        motet::snooze();
      }
    }).await();
  });
}

/// A lock that is free for long between two contentions is kept by nobody meanwhile.
void lock_now_and_then() {
  motet::run(recorded(), [] {
    motet::mutex lock;
    const auto contend = [&] {
      motet::group members;
      for (int i = 0; i < 2; ++i) {
        members.spin({.name = "customer"}, [&] {
          const std::scoped_lock guards(lock);
          motet::sleep_for(3ms);
        });
      }
      members.await_all();
    };
    contend();
    motet::sleep_for(200ms);
    contend();
  });
}

/// A fiber that computes and waits on another thread.
void traveller() {
  motet::thread worker(recorded(), [] {
    motet::current().set_name("host");
    motet::sleep();
  });
  motet::run(recorded(), [&] {
    motet::spin({.name = "traveller"}, [&] {
      const motet::portal visit(worker);
      motet::sleep_for(1ms);
      compute_for(20ms);
    }).await();
  });
}

void convoy() {
  motet::run(recorded(), [] {
    motet::mutex lock;
    int customers = 0;
    motet::group members;
    members.spin({.name = "keeper"}, [&] {
      const std::scoped_lock guards(lock);
      while (customers < 8) motet::snooze();
      motet::sleep_for(40ms);
    });
    for (int i = 0; i < 8; ++i) {
      members.spin({.name = "customer"}, [&] {
        ++customers;
        const std::scoped_lock guards(lock);
      });
    }
    members.await_all();
  });
}

void killed_with_a_leak() {
  motet::run(recorded(), [] {
    motet::spin({.name = "leaked"}, [] { motet::suspend(); });
    motet::sleep_for(30ms);
    be_killed();
  });
}

void deadlock_of_three() {
  motet::run(recorded(), [] {
    std::array<motet::mutex, 3> locks;
    motet::group members;
    for (std::size_t i = 0; i < locks.size(); ++i) {
      members.spin({.name = "philosopher " + std::to_string(i)}, [&, i] {
        const std::scoped_lock first(locks[i]);
        motet::snooze();
        const std::scoped_lock second(locks[(i + 1) % locks.size()]);
      });
    }
    motet::sleep_for(30ms);
    be_killed();
  });
}

/// A ring that has gone round many times still says who runs.
void long_life() {
  motet::run(recorded(1024), [] {
    motet::group members;
    for (const char* name : {"ping", "pong"}) {
      members.spin({.name = name}, [] {
        for (int i = 0; i < 10'000; ++i) motet::snooze();
      });
    }
    motet::current().set_name("the boss");
    members.await_all();
  });
}

/// Among more fibers than the run queue links, an awaited one overtakes the others.
void awaited_among_many() {
  motet::run(recorded(65'536), [] {
    bool over = false;
    motet::group others;
    for (int i = 0; i < 4'500; ++i) {
      others.spin({.name = "bystander"}, [&] {
        while (!over) motet::snooze();
      });
    }
    motet::snooze();
    motet::spin({.name = "awaited"}, [] { compute_for(200ms); }).await();
    over = true;
    others.await_all();
  });
}

/// Two threads that have a word with one another.
void messages() {
  motet::channel<int> visit(0), back(0);
  std::thread worker([&] {
    motet::run(recorded(), [&] {
      motet::current().set_name("echo");
      while (const auto value = visit.pop()) back.push(*value);
    });
  });
  motet::run(recorded(), [&] {
    motet::current().set_name("caller");
    for (int i = 0; i < 20; ++i) {
      visit.push(i);
      if (back.pop() != i) std::abort();
    }
    visit.close();
  });
  worker.join();
}

void cancellations() {
  motet::run(recorded(), [] {
    auto patient = motet::spin({.name = "patient"}, [] { motet::sleep_for(1h); });
    motet::snooze();
    patient.cancel("no more");
    try {
      patient.await();
    } catch (const motet::fiber_cancelled&) {
    }
  });
}

void missed_deadline() {
  motet::run(recorded(), [] { motet::move_on_after(5ms, [] { motet::sleep_for(1h); }); });
}

/// The first failure is the caller's of run(), the second nobody's.
void failure() {
  motet::options config = recorded();
  config.on_unhandled = [](const std::exception_ptr&) {};
  try {
    motet::run(config, [] {
      for (int i = 0; i < 2; ++i) motet::spin([] { throw std::runtime_error("lost"); });
      motet::sleep_for(10ms);
    });
  } catch (const std::runtime_error&) {
  }
}

void stall() {
  motet::options config = recorded();
  config.stall_report = 20ms;
  config.on_notice = [](std::string_view) {};
  motet::run(config,
             [] { motet::spin({.name = "parse_job"}, [] { compute_for(300ms); }).await(); });
}

void dump_signal() {
  motet::options config = recorded();
  config.dump_signal = SIGUSR1;
  motet::run(config, [] {
    ::raise(SIGUSR1);
    motet::sleep_for(20ms);
  });
}

/// A copy is whole whatever the threads do meanwhile.
void saved_while_busy() {
  std::atomic<bool> stop{false};
  std::thread worker([&] {
    motet::run(recorded(65'536), [&] {
      motet::group members;
      for (int i = 0; i < 3; ++i) {
        members.spin({.name = "busy"}, [&] {
          while (!stop) motet::snooze();
        });
      }
      members.await_all();
    });
  });
  std::size_t copies = 0;
  while (copies < testing::scaled(1'000, 50)) {
    if (motet::save_trace("copy-" + std::to_string(copies % 10))) ++copies;
    std::this_thread::sleep_for(100us);
  }
  stop = true;
  worker.join();
  std::puts("saved");
}

/// The child's runtime goes on, but the file is the parent's.
void forked_child() {
  motet::run(recorded(), [] {
    motet::current().set_name("parent");
    const pid_t child = ::fork();
    if (child == 0) {
      motet::current().set_name("child");
      motet::spin({.name = "of the child"}, [] { motet::snooze(); }).await();
      std::exit(motet::save_trace("copy") ? 1 : 0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    std::printf("the child ended with %d\n", WEXITSTATUS(status));
  });
}

/// Threads begin and end, many more than there are rings.
void short_lives() {
  for (int i = 0; i < 40; ++i) {
    std::thread([] { motet::run(recorded(), [] { motet::spin([] {}).await(); }); }).join();
  }
}

void signals() {
  motet::options config = recorded(1024);
  config.dump_signal = SIGUSR1;
  std::atomic<bool> stop{false};
  const pid_t process = ::getpid();
  std::thread sender;
  motet::run(config, [&] {
    const pid_t thread = ::gettid();
    sender = std::thread([&, thread] {
      for (std::size_t i = 0; i < testing::scaled(10'000, 500); ++i) {
        ::tgkill(process, thread, SIGUSR1);
        std::this_thread::sleep_for(20us);
      }
      stop = true;
    });
    motet::group members;
    for (int i = 0; i < 3; ++i) {
      members.spin({.name = "busy"}, [&] {
        while (!stop) motet::snooze();
      });
    }
    members.await_all();
  });
  sender.join();
}

void many_records() {
  const std::size_t records = testing::scaled(10'000'000, 1'000'000);
  motet::run(recorded(testing::scaled(16'777'216, 1'048'576)), [&] {
    motet::group members;
    for (int i = 0; i < 10; ++i) {
      members.spin([&] {
        for (std::size_t j = 0; j < records / 10; ++j) motet::snooze();
      });
    }
    members.await_all();
  });
}

void refusal(motet::options config) {
  try {
    motet::run(config, [] { std::puts("it ran"); });
  } catch (const std::exception& error) {
    std::puts(error.what());
  }
}

void refusals() {
  motet::options config = recorded();
  config.trace.records = 1000;
  refusal(config);
  config = recorded();
  config.trace.file = "/";
  refusal(config);
  std::FILE* diary = std::fopen("diary", "w");
  std::fputs("Dear diary,\n", diary);
  std::fclose(diary);
  config.trace.file = "diary";
  refusal(config);
  refusal(recorded());
  config.trace.file = "another";
  refusal(config);
  try {
    motet::save_trace("trace");
  } catch (const std::invalid_argument& error) {
    std::puts(error.what());
  }
}

void by_environment() {
  motet::run([] { motet::spin({.name = "by the environment"}, [] { motet::snooze(); }).await(); });
  std::puts("it ran");
}

/// Another program empties the file meanwhile.
/// ThreadSanitizer's own store to the page holds a lock, for which its load in the handler waits.
void truncated() {
  if (testing::under_tsan) {
    std::puts("it ran");
    return;
  }
  motet::run(recorded(), [] {
    motet::snooze();
    if (::truncate("trace", 0) != 0) return;
    for (int i = 0; i < 100'000; ++i) motet::spin([] { motet::snooze(); }).await();
  });
  std::puts("it ran");
}

const std::map<std::string_view, void (*)()> programs = {
    {"hog", hog},
    {"late_timer", late_timer},
    {"blocking_read", blocking_read},
    {"renamed", renamed},
    {"lock_now_and_then", lock_now_and_then},
    {"traveller", traveller},
    {"convoy", convoy},
    {"killed_with_a_leak", killed_with_a_leak},
    {"deadlock_of_three", deadlock_of_three},
    {"long_life", long_life},
    {"awaited_among_many", awaited_among_many},
    {"messages", messages},
    {"cancellations", cancellations},
    {"missed_deadline", missed_deadline},
    {"failure", failure},
    {"stall", stall},
    {"dump_signal", dump_signal},
    {"saved_while_busy", saved_while_busy},
    {"forked_child", forked_child},
    {"short_lives", short_lives},
    {"signals", signals},
    {"many_records", many_records},
    {"refusals", refusals},
    {"by_environment", by_environment},
    {"truncated", truncated},
};

}  // namespace

int main(int count, char** words) {
  const auto program = count == 2 ? programs.find(words[1]) : programs.end();
  if (program == programs.end()) return 64;
  program->second();
}
