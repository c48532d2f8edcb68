// SPDX-License-Identifier: MIT
// Simulations for explore_test.py.
//
// usage: explore_programs NAME
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <functional>
#include <map>
#include <motet/motet.hpp>
#include <motet/testing.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>

namespace {

using namespace motet;
using namespace std::chrono_literals;
using motet::testing::world;

void correct(world& in) {
  channel<std::uint32_t> numbers(1);
  group tasks;
  tasks.spin([&] {
    for (int i = 0; i < 3; ++i) {
      sleep_for(1ms * in.random(5));
      numbers.push(in.random(9));
    }
  });
  tasks.spin([&] {
    for (int i = 0; i < 3; ++i) numbers.pop();
  });
  tasks.await_all();
}

void wrong(world& in) {
  correct(in);
  if (in.random(100) == 42) throw std::runtime_error("forty-two");
}

/// Of many decisions, two matter.
void noisy(world& in) {
  for (std::uint32_t rounds = in.random(20); rounds > 0; --rounds) correct(in);
  const bool is_first_right = in.random(8) == 5;
  for (std::uint32_t rounds = in.random(20); rounds > 0; --rounds) correct(in);
  if (is_first_right && in.random(8) == 6) throw std::runtime_error("both are right");
}

/// Its decisions depend on what no seed decides.
void random_of_its_own(world& in) {
  unsigned char dice = 0;
  std::ifstream("/dev/urandom", std::ios::binary).read(reinterpret_cast<char*>(&dice), 1);
  in.random(1'000'000 + dice);
  snooze();
  snooze();
}

void switching_invariant(world& in) {
  in.always([] {
    snooze();
    return true;
  });
  snooze();
}

/// Its fiber cannot be ended.
void stubborn(world& in) {
  in.always([] { return false; });
  for (;;) {
    try {
      snooze();
    } catch (...) {
    }
  }
}

void left_thread(world&) {
  static std::optional<motet::thread> left;  // which nobody destroys in time
  left.emplace([] {
    motet::event never;
    never.wait();
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, std::function<void(world&)>> programs{
      {"correct", &correct},
      {"wrong", &wrong},
      {"noisy", &noisy},
      {"random_of_its_own", &random_of_its_own},
      {"switching_invariant", &switching_invariant},
      {"stubborn", &stubborn},
      {"left_thread", &left_thread}};
  const auto found = argc == 2 ? programs.find(argv[1]) : programs.end();
  if (found == programs.end()) {
    std::fputs("usage: explore_programs NAME\n", stderr);
    return 2;
  }
  try {
    if (const char* const bytes = std::getenv("BYTES")) {
      motet::testing::fuzz(std::as_bytes(std::span(bytes, std::strlen(bytes))), found->second);
      return 0;
    }
    return motet::testing::explore(1'000, found->second);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "refused: %s\n", error.what());
    return 3;
  }
}
