// SPDX-License-Identifier: MIT
// Small programs that are asked for dumps by a signal; dump_signal_test.py runs each by name, sends
// the signals, and looks at what they write.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <motet/motet.hpp>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include "support.hpp"

using namespace std::chrono_literals;

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HOLDS_SIGNALS_BACK 1
#endif
#elif defined(__SANITIZE_THREAD__)
#define HOLDS_SIGNALS_BACK 1
#endif

namespace {

std::atomic<bool> stop{false};

/// Returns: the options of a thread that may wait for others as long as it likes.
motet::options patient() {
  motet::options config;
  config.deadlock_report = 0ms;
  return config;
}

void say(const char* word) {
  std::puts(word);
  std::fflush(stdout);
}

/// Says each line's answer, until "stop" or the end of the input.
void answer_lines() {
  std::array<std::byte, 64> text{};
  for (;;) {
    const std::size_t size = motet::io::read(STDIN_FILENO, text);
    const std::string_view line(reinterpret_cast<const char*>(text.data()), size);
    if (line == "ping\n") say("pong");
    if (line == "stop\n" || size == 0) break;
  }
}

}  // namespace

/// Found by its name in the trace.
extern "C" [[gnu::noinline]] void compute_for_ever() {
  volatile unsigned rounds = 0;
  while (!stop.load(std::memory_order_relaxed)) {
    rounds = rounds + 1;
#if defined(HOLDS_SIGNALS_BACK)
    std::timespec present{};
    ::clock_gettime(CLOCK_MONOTONIC, &present);  // a call at which signals are let through
#endif
  }
}

namespace {

void spin_for_ever(std::atomic<int>& started_fibers) {
  motet::spin({.name = "spinner"}, [&] {
    ++started_fibers;
    compute_for_ever();
    motet::sleep_for(1ms);
  }).await();
}

/// ThreadSanitizer holds a signal back until the fiber that it met calls something, which a fiber
/// that is about to wait in a ring does not: so the thread should wait first.
void sleep_soundly(std::atomic<int>& started_fibers) {
  motet::spin({.name = "dozer", .transient = true}, [] { motet::sleep(); });
  motet::suspend_with<int>([&](motet::resumer<int> wake) {
    std::thread([&started_fibers, wake = std::move(wake)]() mutable {
#if defined(HOLDS_SIGNALS_BACK)
      std::this_thread::sleep_for(100ms);
#endif
      ++started_fibers;
      while (!stop) std::this_thread::sleep_for(1ms);
      wake(0);
    }).detach();
  });
}

void snooze_for_ever(std::atomic<int>& started_fibers) {
  motet::spin({.name = "busy"}, [&] {
    ++started_fibers;
    while (!stop) motet::snooze();
  });
  while (!stop) motet::snooze();
}

/// Sends itself the signal, which MOTET_DUMP_SIGNAL names, again and again while it does something:
/// what it does is met anywhere. Nobody reads what it tells.
template <typename F>
void do_among_signals(F action) {
  const int sink = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  ::dup2(sink, STDERR_FILENO);
  motet::run(patient(), [&] {
    std::atomic<bool> finished{false};
    std::thread sender([&finished, busy = ::pthread_self()] {
      const std::size_t count = testing::scaled(100'000, 2'000);
      for (std::size_t i = 0; i < count; ++i) {
        ::pthread_kill(busy, SIGUSR1);
        const std::timespec pause{0, static_cast<long>(i % 7) * 10'000};
        ::nanosleep(&pause, nullptr);
      }
      finished = true;
    });
    while (!finished) action();
    sender.join();
  });
  say("done");
}

void flooded_while_spinning() {
  do_among_signals([] { motet::spin([] {}).await(); });
}

void flooded_while_snoozing() {
  do_among_signals([] {
    motet::group several;
    for (int i = 0; i < 20; ++i) {
      several.spin([] {
        for (int round = 0; round < 100; ++round) motet::snooze();
      });
    }
    several.await_all();
  });
}

void flooded_while_throwing() {
  do_among_signals([] {
    try {
      throw std::runtime_error("down");
    } catch (const std::runtime_error&) {
      motet::snooze();
    }
  });
}

/// A thread that computes, one that sleeps, one that switches, and main, which reads.
void several_threads() {
  std::atomic<int> started_fibers{0};
  std::vector<std::thread> threads;
  for (auto* body : {spin_for_ever, sleep_soundly, snooze_for_ever}) {
    threads.emplace_back(
        [=, &started_fibers] { motet::run(patient(), [&] { body(started_fibers); }); });
  }
  auto reader = motet::spin({.name = "reader"}, [&] {
    while (started_fibers < 3) motet::snooze();
    say("ready");
    answer_lines();
  });
  reader.await();
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

void one_thread() {
  motet::spin({.name = "reader"}, [] {
    say("ready");
    answer_lines();
  }).await();
}

void option() {
  motet::options config;
  config.dump_signal = SIGUSR2;
  motet::run(config, one_thread);
}

void impossible_option() {
  motet::options config;
  config.dump_signal = SIGKILL;
  try {
    motet::run(config, one_thread);
  } catch (const std::invalid_argument& refused) {
    say(refused.what());
  }
}

/// The handler outlives the runtime.
void runtime_has_ended() {
  motet::run([] { motet::snooze(); });
  say("ready");
  std::array<char, 16> word{};
  if (::read(STDIN_FILENO, word.data(), word.size()) >= 0) say("alive");
}

void own_handler() {
  struct sigaction action{};
  action.sa_sigaction = [](int, siginfo_t* info, void*) {
    const std::string_view text =
        info->si_code == SI_USER ? "own handler\n" : "own handler, of a signal that was sent on\n";
    [[maybe_unused]] const auto count = ::write(STDERR_FILENO, text.data(), text.size());
  };
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGUSR1, &action, nullptr);
  several_threads();
}

/// The child has its own dump, also when another thread gets the signal, and does not disturb its
/// parent's.
void forked_child() {
  auto sleeper = motet::spin({.name = "of the parent"}, [] { motet::sleep(); });
  motet::snooze();
  const pid_t child = ::fork();
  if (child != 0) {
    int status = 0;
    ::waitpid(child, &status, 0);
    std::printf("the child ended with %d\n", WEXITSTATUS(status));
    sleeper.cancel();
    return;
  }
#if defined(HOLDS_SIGNALS_BACK)
  ::raise(SIGUSR1);  // a forked child cannot start a thread under ThreadSanitizer
#else
  std::thread([] { ::raise(SIGUSR1); }).detach();
#endif
  motet::spin({.name = "of the child"}, [] {
    say("ready");
    answer_lines();
  }).await();
  std::_Exit(3);
}

/// Nothing can be written, and nobody should notice.
void errno_stays() {
  motet::snooze();
  ::close(STDERR_FILENO);
  errno = 42;
  ::raise(SIGUSR1);
  const int after_handler = errno;
  std::printf("errno %d\n", after_handler);
}

/// Signals come while runtimes begin and end.
void comings_and_goings() {
  // With a sanitizer a stack takes so long that a flood of signals would leave no time for the
  // rest: ThreadSanitizer needs milliseconds for the names of one.
  constexpr std::chrono::milliseconds pause = testing::under_tsan   ? 20ms
                                              : testing::under_asan ? 5ms
                                                                    : 0ms;
  const std::size_t rounds = testing::scaled(50, 20);
  std::atomic<int> living{3};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (std::size_t round = 0; round < rounds; ++round) {
        motet::run(patient(), [] {
          motet::spin([] { motet::snooze(); });
          motet::snooze();
        });
      }
      --living;
    });
  }
  motet::snooze();
  while (living > 0) {
    ::kill(::getpid(), SIGUSR1);
    std::this_thread::sleep_for(pause);
    motet::snooze();
  }
  for (std::thread& thread : threads) thread.join();
  say("done");
}

void refused() {
  try {
    motet::snooze();
  } catch (const std::invalid_argument& error) {
    say(error.what());
  }
}

const std::map<std::string_view, void (*)()> programs = {
    {"several_threads", several_threads},
    {"option", option},
    {"impossible_option", impossible_option},
    {"runtime_has_ended", runtime_has_ended},
    {"own_handler", own_handler},
    {"forked_child", forked_child},
    {"errno_stays", errno_stays},
    {"flooded_while_snoozing", flooded_while_snoozing},
    {"flooded_while_spinning", flooded_while_spinning},
    {"flooded_while_throwing", flooded_while_throwing},
    {"comings_and_goings", comings_and_goings},
    {"one_thread", one_thread},
    {"refused", refused},
};

}  // namespace

int main(int count, char** words) {
  const auto program = count == 2 ? programs.find(words[1]) : programs.end();
  if (program == programs.end()) return 64;
  program->second();
}
