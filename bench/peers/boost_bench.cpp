// SPDX-License-Identifier: MIT
// The same with Boost.Fiber: stacks pooled and without guards where that is quicker, guarded where
// memory is measured, as whoever wants many of them would have it.
#include <boost/fiber/all.hpp>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <vector>

#include "../measure.hpp"

namespace {

namespace fibers = boost::fibers;
using bench::cost;
using namespace std::chrono_literals;

template <typename Body>
fibers::fiber launch(Body body) {
  static fibers::pooled_fixedsize_stack stacks;
  return fibers::fiber(fibers::launch::post, std::allocator_arg, stacks, std::move(body));
}

double snooze(std::size_t count, std::size_t switches) {
  const std::size_t rounds = switches / count;
  std::size_t left = count;
  double end = 0;
  std::vector<fibers::fiber> all;
  for (std::size_t i = 0; i < count; ++i) {
    all.push_back(launch([&, rounds] {
      for (std::size_t round = 0; round < bench::warm_laps + rounds; ++round) {
        boost::this_fiber::yield();
      }
      if (--left == 0) end = bench::now();
      boost::this_fiber::yield();  // none ends before the last one has been through
    }));
  }
  for (std::size_t lap = 0; lap <= bench::warm_laps; ++lap) boost::this_fiber::yield();
  const double begin = bench::now();
  for (auto& each : all) each.join();
  return (end - begin) / static_cast<double>(rounds * count);
}

double spin_await(std::size_t, std::size_t rounds) {
  std::size_t sum = 0;
  return cost(rounds, [&] {
    for (std::size_t i = 0; i < rounds; ++i) launch([&sum] { ++sum; }).join();
  });
}

double spin_all_await_all(std::size_t count) {
  std::size_t sum = 0;
  std::vector<fibers::fiber> all;
  all.reserve(count);
  return cost(count, [&] {
    for (std::size_t i = 0; i < count; ++i) all.push_back(launch([&sum] { ++sum; }));
    for (auto& each : all) each.join();
  });
}

double spun_cold(std::size_t count, std::size_t) {
  return spin_all_await_all(count);
}

double spun_warm(std::size_t count, std::size_t) {
  spin_all_await_all(count);
  return spin_all_await_all(count);
}

double deadline(std::size_t, std::size_t rounds) {
  fibers::mutex lock;
  fibers::condition_variable changed;
  bool given = false;
  fibers::fiber waiter = launch([&] {
    for (std::size_t i = 0; i < rounds; ++i) {
      std::unique_lock guard(lock);
      changed.wait_for(guard, 1h, [&] { return given; });
      given = false;
    }
  });
  fibers::fiber waker = launch([&] {
    for (std::size_t i = 0; i < rounds; ++i) {
      {
        const std::unique_lock guard(lock);
        given = true;
      }
      changed.notify_one();
      boost::this_fiber::yield();
    }
  });
  return cost(rounds, [&] {
    waiter.join();
    waker.join();
  });
}

double sleepers(std::size_t count, std::size_t) {
  const double from = bench::now(CLOCK_PROCESS_CPUTIME_ID);
  std::vector<fibers::fiber> all;
  for (std::size_t i = 0; i < count; ++i) {
    all.push_back(launch(
        [i] { boost::this_fiber::sleep_for(std::chrono::milliseconds(bench::sleep_of(i))); }));
  }
  for (auto& each : all) each.join();
  return (bench::now(CLOCK_PROCESS_CPUTIME_ID) - from) / 1e6;
}

double memory(std::size_t count, std::size_t) {
  fibers::mutex lock;
  fibers::condition_variable changed;
  bool over = false;
  std::vector<fibers::fiber> all;
  all.reserve(count);
  const double before = bench::resident();
  for (std::size_t i = 0; i < count; ++i) {
    all.emplace_back(fibers::launch::post, std::allocator_arg, fibers::protected_fixedsize_stack(),
                     [&] {
                       std::unique_lock guard(lock);
                       changed.wait(guard, [&] { return over; });
                     });
  }
  boost::this_fiber::yield();
  const double found = (bench::resident() - before) / static_cast<double>(count);
  over = true;
  changed.notify_all();
  for (auto& each : all) each.join();
  return found;
}

constexpr bench::subject subjects[] = {
    {"snooze", &snooze},       {"spin_await", &spin_await}, {"spun_cold", &spun_cold},
    {"spun_warm", &spun_warm}, {"deadline", &deadline},     {"sleepers", &sleepers},
    {"memory", &memory},
};

}  // namespace

int main(int count, char** words) {
  return bench::main_of(subjects, count, words);
}
