// SPDX-License-Identifier: MIT
// Two fibers and a main fiber take turns. Run: hello
#include <cstdio>
#include <motet/motet.hpp>

int main() {
  auto answer = motet::spin([] {
    std::puts("  a fiber: I start when it is my turn");
    motet::snooze();
    std::puts("  a fiber: and go on after the others");
    return 42;
  });
  std::puts("main: a fiber has been spun, and has not run yet");
  motet::snooze();
  std::puts("main: now it has");
  std::printf("main: it returned %d\n", answer.await());
}
