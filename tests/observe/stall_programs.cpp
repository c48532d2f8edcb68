// SPDX-License-Identifier: MIT
// Small programs some of whose fibers hold their thread; stall_test.py runs each by name and reads
// the reports.
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
#include <motet/observe/debug.hpp>
#include <motet/observe/stats.hpp>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "support.hpp"

using namespace std::chrono_literals;

namespace {

motet::options watched(std::chrono::milliseconds limit = 50ms) {
  motet::options config;
  config.stall_report = limit;
  config.deadlock_report = 0ms;
  return config;
}

bool passed(std::chrono::steady_clock::time_point end) {
  // Under ThreadSanitizer a signal waits for the next call into the C library.
  std::timespec present{};
  ::clock_gettime(CLOCK_MONOTONIC, &present);
  return std::chrono::steady_clock::now() >= end;
}

}  // namespace

// Found by their names in stacks; what stands behind a call keeps it from becoming a jump.
extern "C" {

[[gnu::noinline]] void computes_for(int ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
  while (!passed(end)) {
  }
}

/// Between two looks at it, a guard begins or ends many times; in the middle of one, hardly ever.
[[gnu::noinline]] void computes_with_guards_for(int ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
  while (!passed(end)) {
    const motet::no_switch_guard quiet;
    const auto pause = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
    while (!passed(pause)) {
    }
  }
}

/// In assembly, and without unwind tables.
void counts_down_from(unsigned long count);
#if defined(__x86_64__)
asm(R"(
    .text
    .type counts_down_from, @function
    counts_down_from:
      subq $1, %rdi
      jnz counts_down_from
      ret
    .size counts_down_from, . - counts_down_from
)");
#else
asm(R"(
    .text
    .type counts_down_from, %function
    counts_down_from:
      subs x0, x0, #1
      b.ne counts_down_from
      ret
    .size counts_down_from, . - counts_down_from
)");
#endif

[[gnu::noinline]] void counts_down() {
  counts_down_from(1'000'000);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

[[gnu::noinline]] void computes_in_assembly_for(int ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
  while (!passed(end)) counts_down();
}

[[gnu::noinline]] void blocks_in_read(int fd) {
  std::array<char, 16> text{};
  if (::read(fd, text.data(), text.size()) < 0) std::abort();
  std::atomic_signal_fence(std::memory_order_seq_cst);
}
}

namespace {

void hog() {
  motet::run(watched(), [] { motet::spin({.name = "hog"}, [] { computes_for(400); }).await(); });
}

void guarded_hog() {
  motet::run(watched(),
             [] { motet::spin({.name = "hog"}, [] { computes_with_guards_for(400); }).await(); });
}

void assembly_hog() {
  motet::run(watched(),
             [] { motet::spin({.name = "hog"}, [] { computes_in_assembly_for(400); }).await(); });
}

/// A plain thread ends the read that the fiber blocks its thread with.
void blocking_read() {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) std::abort();
  std::thread writer([&] {
    std::this_thread::sleep_for(400ms);
    if (::write(ends[1], "x", 1) != 1) std::abort();
  });
  motet::run(watched(),
             [&] { motet::spin({.name = "reader"}, [&] { blocks_in_read(ends[0]); }).await(); });
  writer.join();
  std::printf("fd %d\n", ends[0]);
  for (const motet::stall_stats& stall : motet::stats().stalls) {
    std::printf("line %u: %llu in %s\n", stall.site.line,
                static_cast<unsigned long long>(stall.stalls), stall.call.c_str());
  }
}

void main_fiber() {
  motet::run(watched(), [] {
    motet::spin([] { motet::sleep_for(1ms); });
    computes_for(400);
  });
}

/// Sleeps, polls, switches as often as it can, hands a long computation on now and then, and
/// computes for less than the limit: nothing of that is a stall.
void busy_but_well() {
  motet::run(watched(200ms), [] {
    motet::sleep_for(500ms);
    motet::group several;
    std::atomic<bool> stop{false};
    several.spin([&] {
      while (!stop) motet::snooze();
    });
    several.spin([&] {
      for (int i = 0; i < 100; ++i) {
        computes_for(5);
        motet::checkpoint();
      }
      stop = true;
    });
    several.await_all();
    const auto end = std::chrono::steady_clock::now() + 500ms;
    while (!passed(end)) motet::snooze();  // alone
  });
}

/// A hog on a thread that is not watched, beside one that is.
void not_watched() {
  motet::options config;
  config.deadlock_report = 0ms;
  std::thread remote([&] { motet::run(config, [] { computes_for(300); }); });
  motet::run(watched(), [] { motet::sleep_for(300ms); });
  remote.join();
}

void again_and_again() {
  motet::run(watched(20ms), [] {
    for (int i = 0; i < 20; ++i) {
      motet::spin([] { computes_for(100); }).await();
    }
  });
  for (const motet::stall_stats& stall : motet::stats().stalls) {
    std::printf("%llu stalls\n", static_cast<unsigned long long>(stall.stalls));
  }
}

/// Runtimes begin and end while they are watched.
void comings_and_goings() {
  for (int i = 0; i < 200; ++i) {
    std::thread remote([] {
      motet::run(watched(5ms), [] { motet::spin({.name = "short"}, [] { motet::snooze(); }); });
    });
    motet::run(watched(5ms), [] { motet::snooze(); });
    remote.join();
  }
  std::puts("done");
}

/// ThreadSanitizer lets no child of a process with several threads begin a thread.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BEGINS_NO_THREADS 1
#endif
#endif

void forked_child() {
  motet::run(watched(), [] { motet::snooze(); });
#if defined(BEGINS_NO_THREADS)
  std::puts("left out");
#else
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    hog();
    ::raise(SIGURG);  // nobody has asked
    std::exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  std::printf("the child ended with %d\n", WEXITSTATUS(status));
#endif
}

/// What the reports are kept in is gone when run() has returned.
void short_lives() {
  std::size_t report_count = 0;
  for (int i = 0; i < 20; ++i) {
    std::mutex lock;
    std::vector<std::string> reports;
    motet::options config = watched(5ms);
    config.on_notice = [&](std::string_view report) {
      const std::lock_guard guard(lock);
      reports.emplace_back(report);
    };
    motet::run(config, [i] { motet::spin([i] { computes_for(4 + i); }).await(); });
    report_count += reports.size();
  }
  std::printf("told %d\n", report_count > 0 ? 1 : 0);
}

/// The signal of a report would end this sleep early.
void blocked_in_a_sleep() {
  motet::run(watched(), [] {
    motet::spin({.name = "sleeper"}, [] {
      const std::timespec length{0, 300'000'000};
      std::printf("slept %d\n", ::nanosleep(&length, nullptr));
    }).await();
  });
}

/// The program's own handler is called for its own signals alone.
void own_handler() {
  struct sigaction action{};
  action.sa_handler = [](int) {
    [[maybe_unused]] const auto n = ::write(STDOUT_FILENO, "own\n", 4);
  };
  ::sigaction(SIGURG, &action, nullptr);
  hog();
  ::raise(SIGURG);
}

void impossible_option() {
  try {
    motet::run(watched(1ms), [] {});
  } catch (const std::invalid_argument& refused) {
    std::puts(refused.what());
  }
}

const std::map<std::string_view, void (*)()> programs = {
    {"hog", hog},
    {"assembly_hog", assembly_hog},
    {"guarded_hog", guarded_hog},
    {"blocking_read", blocking_read},
    {"main_fiber", main_fiber},
    {"busy_but_well", busy_but_well},
    {"not_watched", not_watched},
    {"again_and_again", again_and_again},
    {"comings_and_goings", comings_and_goings},
    {"forked_child", forked_child},
    {"short_lives", short_lives},
    {"blocked_in_a_sleep", blocked_in_a_sleep},
    {"own_handler", own_handler},
    {"impossible_option", impossible_option},
};

}  // namespace

int main(int count, char** words) {
  const auto program = count == 2 ? programs.find(words[1]) : programs.end();
  if (program == programs.end()) return 64;
  program->second();
}
