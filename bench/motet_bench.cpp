// SPDX-License-Identifier: MIT
// What fibers cost. One iteration is one switch, one fiber, one wait; see figures.py.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <memory>
#include <motet/motet.hpp>
#include <random>
#include <stdexcept>
#include <vector>

#include "measure.hpp"

namespace {

using namespace std::chrono_literals;
using bench::cost;

/// Fibers that snooze by turns: neither that they begin nor that they end counts.
class laps {
 public:
  laps(std::size_t fibers, std::size_t switches)
      : fibers_(fibers), rounds_(switches / fibers), left_(fibers) {}

  /// Called by each of the fibers.
  void run() {
    const std::size_t rounds = bench::warm_laps + rounds_;
    for (std::size_t round = 0; round < rounds; ++round) motet::snooze();
    if (--left_ == 0) end_ = bench::now();
    motet::snooze();  // none ends before the last one has been through
  }
  /// Called when all have begun, and are about to go on.
  template <typename Work>
  double cost(Work work) {
    for (std::size_t lap = 0; lap < bench::warm_laps; ++lap) motet::snooze();
    const double begin = bench::now();
    work();
    return (end_ - begin) / static_cast<double>(rounds_ * fibers_);
  }

 private:
  std::size_t fibers_;
  std::size_t rounds_;
  std::size_t left_;
  double end_ = 0;
};

double ring(std::size_t fibers, std::size_t switches) {
  laps turns(fibers, switches);
  motet::group all;
  for (std::size_t i = 0; i < fibers; ++i) all.spin([&] { turns.run(); });
  motet::snooze();
  return turns.cost([&] { all.await_all(); });
}

double snooze(std::size_t fibers, std::size_t switches) {
  return motet::run([&] { return ring(fibers, switches); });
}

/// The fibers are scheduled in random order, and stay in it.
double snooze_shuffled(std::size_t fibers, std::size_t switches) {
  return motet::run([&] {
    laps turns(fibers, switches);
    motet::group all;
    std::vector<motet::fiber_ref> order;
    for (std::size_t i = 0; i < fibers; ++i) {
      order.push_back(all.spin([&] {
        motet::suspend();
        turns.run();
      }));
    }
    motet::snooze();
    std::shuffle(order.begin(), order.end(), std::mt19937(1));
    for (auto& each : order) each.schedule();
    motet::snooze();
    return turns.cost([&] { all.await_all(); });
  });
}

/// The same, with a read and a timer pending.
double snooze_pending(std::size_t fibers, std::size_t switches) {
  return motet::run([&] {
    int ends[2] = {-1, -1};
    if (::pipe(ends) != 0) throw std::runtime_error("pipe");
    motet::group waiting;
    waiting.spin([&] {
      std::byte one{};
      motet::io::read(ends[0], {&one, 1});
    });
    waiting.spin([] { motet::sleep_for(1h); });
    motet::snooze();
    const double found = ring(fibers, switches);
    waiting.cancel();
    waiting.await_all();
    ::close(ends[0]);
    ::close(ends[1]);
    return found;
  });
}

double spin_await(std::size_t, std::size_t rounds) {
  return motet::run([&] {
    std::size_t sum = 0;
    return cost(rounds, [&] {
      for (std::size_t i = 0; i < rounds; ++i) motet::spin([&sum] { ++sum; }).await();
    });
  });
}

double spin_all_await_all(std::size_t fibers) {
  std::size_t sum = 0;
  std::vector<motet::fiber<void>> all;
  all.reserve(fibers);
  return cost(fibers, [&] {
    for (std::size_t i = 0; i < fibers; ++i) all.push_back(motet::spin([&sum] { ++sum; }));
    for (auto& each : all) each.await();
  });
}

double spun_cold(std::size_t fibers, std::size_t) {
  return motet::run([&] { return spin_all_await_all(fibers); });
}

double spun_warm(std::size_t fibers, std::size_t) {
  return motet::run([&] {
    spin_all_await_all(fibers);
    return spin_all_await_all(fibers);
  });
}

/// The sum of [first, first + size): one fiber a number, ten fibers a fiber above.
std::size_t sum_of(std::size_t first, std::size_t size) {
  if (size <= 1) return first;
  const std::size_t part = size / 10;
  std::array<motet::fiber<std::size_t>, 10> parts;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i] = motet::spin([from = first + i * part, part] { return sum_of(from, part); });
  }
  std::size_t sum = 0;
  for (auto& each : parts) sum += each.await();
  return sum;
}

/// size: a power of ten.
double tree(std::size_t size, std::size_t) {
  return motet::run([&] {
    std::size_t sum = 0;
    const double found = cost(size, [&] { sum = sum_of(0, size); });
    if (sum != size * (size - 1) / 2) throw std::runtime_error("a wrong sum");
    return found;
  });
}

/// Waits with a deadline that somebody wakes, while `armed` other timers are set.
double deadline(std::size_t armed, std::size_t rounds) {
  return motet::run([&] {
    motet::group sleepers;
    for (std::size_t i = 0; i < armed; ++i) {
      sleepers.spin([i] { motet::sleep_for(2h + std::chrono::milliseconds(bench::sleep_of(i))); });
    }
    motet::snooze();
    motet::group both;
    auto waiter = both.spin([rounds] {
      for (std::size_t i = 0; i < rounds; ++i) {
        motet::move_on_after(1h, [] { motet::suspend<int>(); });
      }
    });
    both.spin([&waiter, rounds] {
      for (std::size_t i = 0; i < rounds; ++i) {
        waiter.schedule(1);
        motet::snooze();
      }
    });
    const double found = cost(rounds, [&] { both.await_all(); });
    sleepers.cancel();
    return found;
  });
}

/// Time limits that one fiber has entered, one in the other.
struct nested_limits {
  explicit nested_limits(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto due = 2h + std::chrono::milliseconds(bench::sleep_of(i));
      all.emplace_back(due, motet::call_site::here());
    }
  }
  /// They are left from the innermost outwards, which no container promises.
  ~nested_limits() {
    while (!all.empty()) all.pop_back();
  }
  std::deque<motet::detail::timed_scope> all;
};

/// Enters and leaves a time limit that is due before the `armed` others. One fiber holds those: a
/// fiber for each would take longer to make than all the rest.
double limit_unused(std::size_t armed, std::size_t rounds) {
  return motet::run([&] {
    motet::group holder;
    holder.spin([armed] {
      const nested_limits others(armed);
      motet::sleep();
    });
    motet::snooze();
    const double found = cost(rounds, [&] {
      for (std::size_t i = 0; i < rounds; ++i) motet::move_on_after(1h, [] {});
    });
    holder.cancel();
    return found;
  });
}

/// Spins a group of `size` fibers and awaits them together, until there have been `fibers`.
double group_of(std::size_t size, std::size_t fibers) {
  return motet::run([&] {
    std::size_t sum = 0;
    const std::size_t rounds = fibers / size;
    return cost(rounds * size, [&] {
      for (std::size_t round = 0; round < rounds; ++round) {
        motet::group all;
        for (std::size_t i = 0; i < size; ++i) all.spin([&sum] { ++sum; });
        all.await_all();
      }
    });
  });
}

double cancel_parked(std::size_t fibers, std::size_t) {
  return motet::run([&] {
    motet::group all;
    for (std::size_t i = 0; i < fibers; ++i) all.spin([] { motet::sleep(); });
    motet::snooze();
    return cost(fibers, [&] {
      all.cancel();
      all.await_all();
    });
  });
}

/// Returns: milliseconds of the processor.
double sleepers(std::size_t fibers, std::size_t) {
  const double from = bench::now(CLOCK_PROCESS_CPUTIME_ID);
  motet::run([&] {
    motet::group all;
    for (std::size_t i = 0; i < fibers; ++i) {
      all.spin([i] { motet::sleep_for(std::chrono::milliseconds(bench::sleep_of(i))); });
    }
    all.await_all();
  });
  return (bench::now(CLOCK_PROCESS_CPUTIME_ID) - from) / 1e6;
}

struct stone {};

/// A fiber throws, switches away while it unwinds, and catches.
double throw_across(std::size_t, std::size_t rounds) {
  struct pause {
    ~pause() { motet::snooze(); }
  };
  return motet::run([&] {
    motet::group both;
    for (int i = 0; i < 2; ++i) {
      both.spin([rounds] {
        for (std::size_t round = 0; round < rounds / 2; ++round) {
          try {
            const pause here;
            throw stone();
          } catch (const stone&) {
          }
        }
      });
    }
    return cost(rounds, [&] { both.await_all(); });
  });
}

/// Returns: resident bytes of each parked fiber.
double memory(std::size_t fibers, std::size_t) {
  return motet::run([&] {
    motet::group all;
    const double before = bench::resident();
    for (std::size_t i = 0; i < fibers; ++i) all.spin([] { motet::sleep(); });
    motet::snooze();
    const double found = (bench::resident() - before) / static_cast<double>(fibers);
    all.cancel();
    return found;
  });
}

constexpr bench::subject subjects[] = {
    {"snooze", &snooze},
    {"snooze_shuffled", &snooze_shuffled},
    {"snooze_pending", &snooze_pending},
    {"spin_await", &spin_await},
    {"spun_cold", &spun_cold},
    {"spun_warm", &spun_warm},
    {"group_of", &group_of},
    {"tree", &tree},
    {"deadline", &deadline},
    {"limit_unused", &limit_unused},
    {"sleepers", &sleepers},
    {"throw_across", &throw_across},
    {"cancel_parked", &cancel_parked},
    {"memory", &memory},
};

}  // namespace

int main(int count, char** words) {
  return bench::main_of(subjects, count, words);
}
