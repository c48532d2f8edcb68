// SPDX-License-Identifier: MIT
// What a switch and a fiber cost, beside the bare limit measured in the same run: an intrusive ring
// of contexts, each of which touches two lines of its stack, and nothing else. One iteration of a
// ring is one switch. Prints a table, and with --json objects; --quick only shows that it works.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <motet/detail/context.hpp>
#include <motet/motet.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "stack_pool.hpp"

namespace {

using motet::detail::context;
using motet::detail::stack;
using motet::detail::stack_pool;

double nanoseconds_for(std::uint64_t iterations, const std::function<void()>& work) {
  const auto from = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - from;
  return took.count() / static_cast<double>(iterations);
}

struct bare_ring {
  struct place {
    context where;
    place* next = nullptr;
    bare_ring* ring = nullptr;
    stack rest;
  };

  explicit bare_ring(std::size_t size) : places(size) {
    for (std::size_t i = 0; i < size; ++i) {
      places[i].next = &places[(i + 1) % size];
      places[i].ring = this;
      places[i].rest = pool.take(stack_pool::default_size);
      motet::detail::lay_out(places[i].where, places[i].rest.top, &go_round, &places[i]);
    }
  }

  static void go_round(void* argument) {
    auto* here = static_cast<place*>(argument);
    std::array<volatile char, 96> frame{};
    for (;;) {
      frame.front() = 1;
      frame.back() = 1;
      place* to = here->next;
      const bool over = --here->ring->left == 0;
      motet::detail::switch_context(here->where, over ? here->ring->home : to->where);
    }
  }

  double per_switch(std::uint64_t switches) {
    left = switches;
    return nanoseconds_for(switches,
                           [&] { motet::detail::switch_context(home, places.front().where); });
  }

  stack_pool pool;
  std::deque<place> places;
  context home;
  std::uint64_t left = 0;
};

double snooze_ring(std::size_t fibers, std::uint64_t switches, bool with_pending) {
  return motet::run([&] {
    motet::group ring;
    int ends[2] = {-1, -1};
    if (with_pending) {
      if (::pipe(ends) != 0) return 0.0;
      ring.spin({.transient = true}, [&] {
        std::byte one{};
        motet::io::read(ends[0], {&one, 1});
      });
      ring.spin({.transient = true}, [] { motet::sleep_for(std::chrono::hours(1)); });
      motet::snooze();
    }
    const std::uint64_t rounds = switches / fibers;
    for (std::size_t i = 0; i < fibers; ++i) {
      ring.spin([rounds] {
        for (std::uint64_t round = 0; round < rounds; ++round) motet::snooze();
      });
    }
    const double cost = nanoseconds_for(rounds * fibers, [&] { ring.await_all(); });
    if (with_pending) motet::fd(ends[1]).close();
    ring.cancel();
    return cost;
  });
}

double spin_and_await(std::uint64_t rounds) {
  return motet::run([&] {
    std::uint64_t sum = 0;
    return nanoseconds_for(rounds, [&] {
      for (std::uint64_t i = 0; i < rounds; ++i) motet::spin([&sum] { ++sum; }).await();
    });
  });
}

double wait_with_deadline(std::uint64_t rounds) {
  return motet::run([&] {
    motet::group both;
    auto waiter = both.spin([rounds] {
      for (std::uint64_t i = 0; i < rounds; ++i) {
        motet::move_on_after(std::chrono::hours(1), [] { motet::suspend<int>(); });
      }
    });
    auto waker = both.spin([&waiter, rounds] {
      for (std::uint64_t i = 0; i < rounds; ++i) {
        waiter.schedule(1);
        motet::snooze();
      }
    });
    return nanoseconds_for(rounds, [&] { both.await_all(); });
  });
}

struct row {
  std::string name;
  std::vector<double> costs;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int count, char** words) {
  bool quick = false;
  bool json = false;
  for (int i = 1; i < count; ++i) {
    quick = quick || std::string_view(words[i]) == "--quick";
    json = json || std::string_view(words[i]) == "--json";
  }
  const int rounds = quick ? 1 : 9;
  const std::uint64_t switches = quick ? 20'000 : 2'000'000;
  std::vector<row> rows;
  for (const std::size_t size : {2, 100, 1000, 10000}) {
    rows.push_back({"bare ring of " + std::to_string(size), {}});
    rows.push_back({"snooze ring of " + std::to_string(size), {}});
  }
  rows.push_back({"snooze ring of 2, a read and a timer pending", {}});
  rows.push_back({"spin + await", {}});
  rows.push_back({"wait with a deadline, woken", {}});
  for (int round = 0; round < rounds; ++round) {
    std::size_t next = 0;
    for (const std::size_t size : {2, 100, 1000, 10000}) {
      rows[next++].costs.push_back(bare_ring(size).per_switch(switches));
      rows[next++].costs.push_back(snooze_ring(size, switches, false));
    }
    rows[next++].costs.push_back(snooze_ring(2, switches, true));
    rows[next++].costs.push_back(spin_and_await(switches / 10));
    rows[next++].costs.push_back(wait_with_deadline(switches / 10));
  }
  for (const row& each : rows) {
    const auto [least, most] = std::minmax_element(each.costs.begin(), each.costs.end());
    std::printf(json ? "{\"what\": \"%s\", \"ns\": %.2f, \"min\": %.2f, \"max\": %.2f}\n"
                     : "%-46s %8.2f ns  [%.2f, %.2f]\n",
                each.name.c_str(), median(each.costs), *least, *most);
  }
}
