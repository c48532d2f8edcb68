// SPDX-License-Identifier: MIT
// A value that each fiber has its own of. This one is inherited: what a request spins knows whose
// work it does, and nothing hands the number from call to call. Run: fiber_local
#include <chrono>
#include <cstdio>
#include <motet/motet.hpp>

using namespace std::chrono_literals;

namespace {

const motet::fiber_local<int> request(motet::inherited, 0);

void note(const char* event) {
  std::printf("  request %d: %s\n", *request, event);
}

void look_up(const char* table) {
  motet::sleep_for(10ms);
  note(table);
}

void serve(int number) {
  *request = number;
  note("begins");
  motet::await_all([] { look_up("names"); }, [] { look_up("prices"); });
  note("ends");
}

}  // namespace

int main() {
  motet::group requests;
  for (int number = 1; number <= 3; ++number) requests.spin([number] { serve(number); });
  requests.await_all();
  std::printf("main has kept its own value: %d\n", *request);
  return *request;
}
