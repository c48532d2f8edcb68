// SPDX-License-Identifier: MIT
// A program of somebody else: uses what is inline, what is linked, an exception that crosses a
// fiber's end, time, and the version.
#include <chrono>
#include <motet/motet.hpp>
#include <stdexcept>
#include <string>

std::string version_of_headers() {
  return std::to_string(MOTET_VERSION / 10000) + '.' + std::to_string(MOTET_VERSION / 100 % 100) +
         '.' + std::to_string(MOTET_VERSION % 100) + MOTET_VERSION_SUFFIX;
}

int main() {
  using namespace std::chrono_literals;
  if (motet::version() != version_of_headers()) return 3;
  auto answer = motet::spin([] {
    motet::sleep_for(1ms);
    return 42;
  });
  if (answer.await() != 42) return 1;
  auto failure = motet::spin([] { throw std::runtime_error("no"); });
  try {
    failure.await();
  } catch (const std::runtime_error&) {
    return 0;
  }
  return 2;
}
