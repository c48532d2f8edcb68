// SPDX-License-Identifier: MIT
// The mistakes that people make, a small program each: mistakes_test.py runs them, and looks at
// what each is told. See docs/gotchas.md.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <motet/motet.hpp>
#include <motet/observe/debug.hpp>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <thread>

using namespace std::chrono_literals;

namespace {

/// Says what `call` throws.
template <typename Call>
void say_what_is_thrown_by(Call call) {
  try {
    call();
  } catch (const std::exception& error) {
    std::puts(error.what());
  }
}

motet::options watched() {
  motet::options config;
  config.stall_report = 50ms;
  return config;
}

void std_mutex_across_a_switch() {
  motet::run(watched(), [] {
    std::mutex locked;
    motet::group fibers;
    fibers.spin([&] {
      const std::lock_guard lock(locked);
      motet::sleep_for(10ms);
    });
    fibers.spin([&] { const std::lock_guard lock(locked); });
    std::thread([] {
      std::this_thread::sleep_for(300ms);
      ::_exit(0);  // nothing else ends this
    }).detach();
    fibers.await_all();
  });
}

void sleep_of_the_thread() {
  motet::run(watched(), [] { motet::spin([] { std::this_thread::sleep_for(200ms); }).await(); });
}

void local_on_two_threads() {
  motet::local::mutex lock;
  lock.lock();
  std::thread([&] { say_what_is_thrown_by([&] { lock.lock(); }); }).join();
  lock.unlock();
}

void forgotten_await() {
  motet::spin([] { throw std::runtime_error("nobody asked"); });
  motet::sleep_for(10ms);
  std::puts("not reached");
}

void thrown_int() {
  const auto failing = motet::spin([] { throw 42; });
  try {
    failing.await();
  } catch (int number) {
    std::printf("an int: %d\n", number);
  }
}

void handle_of_nothing() {
  const motet::fiber_ref empty;
  say_what_is_thrown_by([&] { empty.await(); });
}

void handle_after_the_end() {
  const auto dead = motet::spin([] { return 1; });
  std::printf("%d\n", dead.await());
  dead.cancel();
  dead.raise(std::runtime_error("too late"));
  std::printf("%d\n", dead.await());
}

void unclosed_channel() {
  motet::channel<int> numbers(1);
  const auto reader = motet::spin([&] {
    while (numbers.pop().has_value()) continue;
  });
  numbers.push(1);
  say_what_is_thrown_by([&] { reader.await(); });
  numbers.close();
}

void two_locks() {
  motet::mutex first;
  motet::mutex second;
  const auto in_turn = [](motet::mutex& outer_lock, motet::mutex& inner_lock) {
    const std::lock_guard outer(outer_lock);
    motet::snooze();
    const std::lock_guard inner(inner_lock);
  };
  motet::group fibers;
  fibers.spin([&] { in_turn(first, second); });
  fibers.spin([&] { in_turn(second, first); });
  say_what_is_thrown_by([&] { fibers.await_all(); });
}

// A frame that no compiler folds into the next.
int depth_of(int frames) {
  volatile char frame[512];
  frame[0] = static_cast<char>(frames);
  return frames == 0 ? frame[0] : depth_of(frames + 1) + frame[0];
}

void deep_recursion() {
  motet::spin({.name = "deep"}, [] { std::printf("%d\n", depth_of(1)); }).await();
}

void switch_in_a_handler() {
  motet::spin([] {});
  const motet::no_switch_guard guard;  // as the first line of a handler
  motet::snooze();
}

void nested_run() {
  motet::run([] { say_what_is_thrown_by([] { motet::run([] { std::puts("not reached"); }); }); });
}

void fork_in_the_middle() {
  const auto sleeper = motet::spin([] { motet::sleep_for(50ms); });
  if (::fork() == 0) {
    say_what_is_thrown_by([&] { sleeper.await(); });
    std::fflush(stdout);
    ::_exit(0);
  }
  ::wait(nullptr);
  sleeper.await();
}

void left_at_the_end() {
  motet::spin([] {
    try {
      motet::sleep();
    } catch (const motet::cancelled& error) {
      std::puts(error.reason());
      throw;
    }
  });
  motet::snooze();
}

struct mistake {
  std::string_view name;
  void (*make)();
};

constexpr mistake mistakes[] = {
    {"std_mutex_across_a_switch", std_mutex_across_a_switch},
    {"sleep_of_the_thread", sleep_of_the_thread},
    {"local_on_two_threads", local_on_two_threads},
    {"forgotten_await", forgotten_await},
    {"thrown_int", thrown_int},
    {"handle_of_nothing", handle_of_nothing},
    {"handle_after_the_end", handle_after_the_end},
    {"unclosed_channel", unclosed_channel},
    {"two_locks", two_locks},
    {"deep_recursion", deep_recursion},
    {"switch_in_a_handler", switch_in_a_handler},
    {"nested_run", nested_run},
    {"fork_in_the_middle", fork_in_the_middle},
    {"left_at_the_end", left_at_the_end},
};

}  // namespace

int main(int count, char** words) {
  for (const mistake& entry : mistakes) {
    if (count == 2 && entry.name == words[1]) {
      entry.make();
      return 0;
    }
  }
  return 64;
}
