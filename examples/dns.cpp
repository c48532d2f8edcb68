// SPDX-License-Identifier: MIT
// A name is looked up on another thread while this one's fibers go on, and a time limit holds
// however long the resolver takes. Run: dns
#include <chrono>
#include <cstdio>
#include <motet/motet.hpp>
#include <string>
#include <system_error>

using namespace std::chrono_literals;

int main() {
  int ticks = 0;
  auto ticker = motet::spin([&] {
    for (;; ++ticks) motet::sleep_for(50us);
  });
  try {
    motet::with_timeout(500ms, [] {
      for (const motet::net::endpoint& address : motet::dns::resolve("localhost", 80)) {
        std::printf("localhost: %s\n", address.to_string().c_str());
      }
    });
  } catch (const motet::timed_out&) {
    std::puts("the resolver takes too long");
  } catch (const std::system_error& error) {
    std::printf("no address: %s\n", error.what());
  }
  ticker.cancel();
  std::printf("meanwhile another fiber ran %d times\n", ticks);
}
