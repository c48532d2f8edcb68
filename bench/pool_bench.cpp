// SPDX-License-Identifier: MIT
// What work for other threads costs: one iteration is one round trip, one job; see figures.py.
#include <sys/resource.h>

#include <algorithm>
#include <motet/motet.hpp>
#include <motet/threads/offload.hpp>
#include <motet/threads/thread_pool.hpp>
#include <vector>

#include "measure.hpp"

namespace {

using bench::cost;

constexpr std::size_t workers = 2;

/// Each job leaves its result in its own place. `many`: the workers; 0 for as many as usual.
double jobs(std::size_t many, std::size_t count) {
  motet::thread_pool pool(many == 0 ? workers : many);
  std::vector<std::size_t> results(count);
  return cost(count, [&] {
    for (std::size_t i = 0; i < count; ++i) {
      pool.post([&results, i] { results[i] = i * 2; });
    }
    pool.drain();
  });
}

/// The same, submitted by a fiber that is no worker's.
double jobs_of_fiber(std::size_t, std::size_t count) {
  return motet::run([&] { return jobs(0, count); });
}

/// The same, submitted by a job.
double jobs_of_worker(std::size_t, std::size_t count) {
  motet::thread_pool pool(workers);
  std::vector<std::size_t> results(count);
  return cost(count, [&] {
    pool.post([&] {
      for (std::size_t i = 0; i < count; ++i) {
        pool.post([&results, i] { results[i] = i * 2; });
      }
    });
    pool.drain();
  });
}

/// Sleeps of a thread in 1,000 such jobs, which a wake-up ends.
double wakes(std::size_t, std::size_t count) {
  rusage before{};
  ::getrusage(RUSAGE_SELF, &before);
  jobs(0, count);
  rusage after{};
  ::getrusage(RUSAGE_SELF, &after);
  return static_cast<double>(after.ru_nvcsw - before.ru_nvcsw) * 1e3 / static_cast<double>(count);
}

double jobs_with_futures(std::size_t, std::size_t count) {
  motet::thread_pool pool(workers);
  std::vector<motet::future<std::size_t>> results;
  results.reserve(count);
  return cost(count, [&] {
    for (std::size_t i = 0; i < count; ++i) {
      results.push_back(pool.submit([i] { return i * 2; }));
    }
    for (const auto& each : results) each.get();
  });
}

double one_at_a_time(std::size_t, std::size_t count) {
  motet::thread_pool pool(workers);
  return motet::run([&] {
    return cost(count, [&] {
      for (std::size_t i = 0; i < count; ++i) pool.submit([i] { return i * 2; }).get();
    });
  });
}

void compute_for(double nanoseconds) {
  for (const double from = bench::now(); bench::now() - from < nanoseconds;) {
  }
}

/// Microseconds from the gift of a job to its end, of the slowest of 99 in 100: all compute for
/// two, but one of them for 50,000.
double beside_long(std::size_t, std::size_t count) {
  motet::thread_pool pool(workers);
  std::vector<double> taken(count);
  for (std::size_t i = 0; i < count; ++i) {
    pool.post([&taken, i, count, given = bench::now()] {
      compute_for(i == count / 10 ? 50e6 : 2e3);
      taken[i] = bench::now() - given;
    });
  }
  pool.drain();
  const auto place = taken.begin() + static_cast<std::ptrdiff_t>(count * 99 / 100);
  std::nth_element(taken.begin(), place, taken.end());
  return *place / 1e3;
}

/// A call to a thread of its own, which needs no pool.
double call(std::size_t, std::size_t count) {
  motet::thread other([] { motet::sleep(); });
  return motet::run([&] {
    return cost(count, [&] {
      for (std::size_t i = 0; i < count; ++i) other.call([i] { return i * 2; });
    });
  });
}

/// To a plain thread.
double offload(std::size_t, std::size_t count) {
  return motet::run([&] {
    return cost(count, [&] {
      for (std::size_t i = 0; i < count; ++i) motet::offload([i] { return i * 2; });
    });
  });
}

constexpr bench::subject subjects[] = {
    {"jobs", &jobs},
    {"jobs_of_fiber", &jobs_of_fiber},
    {"jobs_of_worker", &jobs_of_worker},
    {"wakes", &wakes},
    {"jobs_futures", &jobs_with_futures},
    {"one_job", &one_at_a_time},
    {"beside_long", &beside_long},
    {"call", &call},
    {"offload", &offload},
};

}  // namespace

int main(int count, char** words) {
  return bench::main_of(subjects, count, words);
}
