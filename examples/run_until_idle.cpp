// SPDX-License-Identifier: MIT
// A main fiber that suspends goes on when nothing is left to run and nothing pends: so a program
// runs until all is done. Run: run_until_idle
#include <chrono>
#include <cstdio>
#include <motet/motet.hpp>

using namespace std::chrono_literals;

int main() {
  for (int voice = 1; voice <= 3; ++voice) {
    motet::spin([voice] {
      for (int bar = 1; bar <= 3; ++bar) {
        motet::sleep_for(voice * 10ms);
        std::printf("voice %d, bar %d\n", voice, bar);
      }
    });
  }
  motet::suspend();
  std::puts("all is done");
}
