// SPDX-License-Identifier: MIT
// Two fibers hand a number to each other through suspend() and schedule(). Run: ping_pong
#include <cstdio>
#include <motet/motet.hpp>

int main() {
  motet::group players;
  auto pong = players.spin({.name = "pong"}, [] {
    auto partner = motet::suspend<motet::fiber_ref>();
    for (;;) {
      const int ball = motet::suspend<int>();
      std::printf("pong %d\n", ball);
      partner.schedule(ball + 1);
      if (ball >= 9) return;
    }
  });
  auto ping = players.spin({.name = "ping"}, [&pong] {
    pong.schedule(motet::current());
    motet::snooze();
    for (int ball = 1; ball <= 9; ball = motet::suspend<int>()) {
      std::printf("ping %d\n", ball);
      pong.schedule(ball);
    }
  });
  players.await_all();
}
