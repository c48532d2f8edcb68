// SPDX-License-Identifier: MIT
// Time limits in one another: each ends its own call only, and of several that have passed the
// outermost speaks. One that activity puts off, and a value that stands in. Run: nested_timeouts
#include <chrono>
#include <cstdio>
#include <motet/motet.hpp>

using namespace std::chrono_literals;

namespace {

void wait_within(motet::clock::duration outer, motet::clock::duration inner) {
  const bool in_time = motet::move_on_after(outer, [&] {
    motet::move_on_after(inner, [] { motet::sleep(); });
    std::puts("  the inner limit spoke, the outer call goes on");
  });
  if (!in_time) std::puts("  the outer limit spoke: both calls are left");
}

/// Reads what a fiber sends until it has been silent for a while.
int read_until_silence() {
  auto sender = motet::spin([reader = motet::current()] {
    for (int message = 1; message <= 5; ++message) {
      reader.schedule(message);
      motet::sleep_for(20ms);
    }
    motet::sleep();  // has no more to say, and does not hang up
  });
  int last = 0;
  motet::move_on_after(60ms, [&](motet::deadline& silence) {
    for (;;) {
      last = motet::suspend<int>();
      silence.reset(60ms);
    }
  });
  sender.cancel();
  return last;
}

int ask(motet::clock::duration takes) {
  motet::sleep_for(takes);
  return 42;
}

}  // namespace

int main() {
  std::puts("20 ms in an hour:");
  wait_within(1h, 20ms);
  std::puts("an hour in 20 ms:");
  wait_within(20ms, 1h);
  std::puts("20 ms in 20 ms:");
  wait_within(20ms, 20ms);

  std::printf("60 ms of silence came after message %d\n", read_until_silence());

  std::printf("who answers at once: %d\n", motet::move_on_after(1h, [] { return ask(0ms); }, -1));
  std::printf("who takes an hour: %d\n", motet::move_on_after(20ms, [] { return ask(1h); }, -1));
}
