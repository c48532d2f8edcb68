// SPDX-License-Identifier: MIT
// A fiber that waits for several things at once, and does whichever comes first: a reading, the end
// of a worker, or a pause in which nothing comes. What is not taken stays where it is. Run: select
#include <chrono>
#include <cstdio>
#include <motet/motet.hpp>
#include <optional>

using namespace std::chrono_literals;

int main() {
  motet::channel<int> readings(4);
  auto gauge = motet::spin([&] {
    for (const int degrees : {19, 20, 21}) {
      readings.push(degrees);
      motet::sleep_for(20ms);
    }
    motet::sleep_for(100ms);
  });

  int sum = 0;
  for (bool goes_on = true; goes_on;) {
    motet::select(motet::on_pop(readings,
                                [&](std::optional<int> degrees) {
                                  std::printf("a reading: %d\n", *degrees);
                                  sum += *degrees;
                                }),
                  motet::on_end(gauge,
                                [&] {
                                  std::puts("the gauge has ended");
                                  goes_on = false;
                                }),
                  motet::on_timeout(60ms, [] { std::puts("nothing for 60 ms"); }));
  }
  return sum == 60 ? 0 : 1;
}
