// SPDX-License-Identifier: MIT
// What counts.py counts the instructions of: `counts WHAT ROUNDS` does one thing so often.
#include <sys/socket.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <motet/motet.hpp>

namespace {

using namespace std::chrono_literals;

void snooze(long rounds) {
  motet::group both;
  for (int i = 0; i < 2; ++i) {
    both.spin([rounds] {
      for (long round = 0; round < rounds; round += 2) motet::snooze();
    });
  }
  both.await_all();
}

void spin_and_await(long rounds) {
  long sum = 0;
  for (long round = 0; round < rounds; ++round) motet::spin([&sum] { ++sum; }).await();
}

void deadline(long rounds) {
  motet::group both;
  auto waiter = both.spin([rounds] {
    for (long round = 0; round < rounds; ++round) {
      motet::move_on_after(1h, [] { motet::suspend<int>(); });
    }
  });
  both.spin([&waiter, rounds] {
    for (long round = 0; round < rounds; ++round) {
      waiter.schedule(1);
      motet::snooze();
    }
  });
  both.await_all();
}

/// A byte that is sent, read by a fiber that waits for it, and told of to the sender.
void read(long rounds) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::abort();
  motet::group both;
  motet::fiber_ref writer = both.spin([&] {
    const std::byte one{};
    for (long round = 0; round < rounds; ++round) {
      if (::send(ends[1], &one, 1, 0) != 1) std::abort();
      motet::suspend();
    }
  });
  both.spin([&] {
    std::byte one{};
    for (long round = 0; round < rounds; ++round) {
      motet::io::recv(ends[0], {&one, 1});
      writer.schedule();
    }
  });
  both.await_all();
}

struct subject {
  const char* name;
  void (*run)(long rounds);
};
constexpr subject subjects[] = {{"snooze", &snooze},
                                {"spin_and_await", &spin_and_await},
                                {"deadline", &deadline},
                                {"read", &read}};

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  motet::options chosen;
  chosen.time_between_polls = 1s;  // or the counts would depend on the time
  for (const subject& each : subjects) {
    if (std::strcmp(each.name, words[1]) != 0) continue;
    motet::run(chosen, [&] { each.run(std::atol(words[2])); });
    return 0;
  }
  std::fprintf(stderr, "unknown: %s\n", words[1]);
  return 2;
}
