// SPDX-License-Identifier: MIT
// What ways_bench.cpp measures, with std::thread and std::mutex.
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "../measure.hpp"

namespace {

using bench::cost;

constexpr std::size_t workers = 2;

/// Two threads that hand a turn to each other.
double turn_about(std::size_t, std::size_t count) {
  std::mutex lock;
  std::condition_variable changed;
  bool there = false;
  std::thread other([&] {
    std::unique_lock in(lock);
    for (std::size_t i = 0; i < count; ++i) {
      changed.wait(in, [&] { return there; });
      there = false;
      changed.notify_one();
    }
  });
  const double found = cost(count, [&] {
    std::unique_lock in(lock);
    for (std::size_t i = 0; i < count; ++i) {
      there = true;
      changed.notify_one();
      changed.wait(in, [&] { return !there; });
    }
  });
  other.join();
  return found;
}

double free_mutex(std::size_t, std::size_t count) {
  std::mutex lock;
  return cost(count, [&] {
    for (std::size_t i = 0; i < count; ++i) const std::lock_guard in(lock);
  });
}

/// Threads that count under a mutex, each time anew.
double wanted_mutex(std::size_t, std::size_t count) {
  std::mutex lock;
  std::size_t counter = 0;
  return cost(count, [&] {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < workers; ++i) {
      threads.emplace_back([&] {
        for (std::size_t k = 0; k < count / workers; ++k) {
          const std::lock_guard in(lock);
          ++counter;
        }
      });
    }
    for (std::thread& each : threads) each.join();
  });
}

constexpr bench::subject subjects[] = {
    {"portal", &turn_about},  {"portal_to_loop", &turn_about}, {"strand", &wanted_mutex},
    {"mutex", &wanted_mutex}, {"slice_free", &free_mutex},     {"slice_wanted", &wanted_mutex},
};

}  // namespace

int main(int count, char** words) {
  return bench::main_of(subjects, count, words);
}
