// SPDX-License-Identifier: MIT
// A program for gdb_test.py to look into: fibers that wait below functions of its own, one that has
// not run, one on another thread, and a main fiber that is in none of motet's calls.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <motet/motet.hpp>
#include <thread>

namespace {

using namespace std::chrono_literals;

/// Not a tail call, so that each is a frame.
[[gnu::noinline]] int deep_inside(int depth) {
  if (depth == 0) return motet::suspend<int>();
  const volatile int result = deep_inside(depth - 1);
  return result + 1;
}

[[gnu::noinline]] int on_another_thread() {
  const volatile int result = motet::suspend<int>();
  return result + 1;
}

[[gnu::noinline]] void in_no_call_of_motets() {
  for (;;) ::pause();
}

void say(const char* name, std::uint64_t number) {
  std::printf("%s %llu\n", name, static_cast<unsigned long long>(number));
}

void live_elsewhere() {
  motet::options patient;
  patient.deadlock_report = 0ms;
  motet::run(patient, [] {
    const auto visitor = motet::spin({.name = "elsewhere"}, [] { on_another_thread(); });
    say("elsewhere", visitor.id());
    std::thread([] {
      for (;;) ::pause();
    }).detach();
    std::puts("ready");
    std::fflush(stdout);
    visitor.await();
  });
}

}  // namespace

int main() {
  const auto parked = motet::spin({.name = "parked"}, [] { deep_inside(2); });
  const auto awaiting = motet::spin([&] { parked.await(); });
  motet::mutex lock;
  const auto holding = motet::spin([&] {
    lock.lock();
    motet::suspend();
  });
  const auto locking = motet::spin([&] { lock.lock(); });
  motet::snooze();
  const auto fresh = motet::spin({.name = "fresh"}, [] {});
  say("parked", parked.id());
  say("awaiting", awaiting.id());
  say("fresh", fresh.id());
  say("holding", holding.id());
  say("locking", locking.id());
  std::thread(live_elsewhere).detach();
  in_no_call_of_motets();
}
