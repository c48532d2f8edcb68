// SPDX-License-Identifier: MIT
// What it costs to go where something is, and to be there alone; see figures.py.
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <motet/motet.hpp>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "measure.hpp"

namespace {

using bench::cost;
using namespace std::chrono_literals;

constexpr std::size_t workers = 2;
constexpr std::size_t fibers_of_each = 50;

/// There and back is one iteration. A thread that does not wait awake is asleep each time.
double portal(std::size_t awake, std::size_t count) {
  motet::options how;
  if (awake == 0) how.busy_wait = 0us;
  motet::thread there(how, [] { motet::sleep(); });
  return motet::run(how, [&] {
    return motet::spin([&] {
             return cost(count, [&] {
               for (std::size_t i = 0; i < count; ++i) const motet::portal open(there);
             });
           })
        .await();
  });
}

/// A loop that knows nothing of motet. It ends with what it has been given.
class plain_loop {
 public:
  ~plain_loop() {
    post(nullptr);
    runs_.join();
  }
  void post(std::function<void()> f) {
    const std::lock_guard in(lock_);
    left_.push_back(std::move(f));
    changed_.notify_one();
  }

 private:
  std::function<void()> next() {
    std::unique_lock in(lock_);
    changed_.wait(in, [this] { return !left_.empty(); });
    std::function<void()> first = std::move(left_.front());
    left_.pop_front();
    return first;
  }
  void run() {
    while (const std::function<void()> f = next()) f();
  }

  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> left_;
  std::thread runs_{[this] { run(); }};
};

double portal_to_loop(std::size_t, std::size_t count) {
  plain_loop there;
  return motet::run([&] {
    return cost(count, [&] {
      for (std::size_t i = 0; i < count; ++i) const motet::portal open(there);
    });
  });
}

/// Fibers of all workers of a pool, each of which does `work()` again and again.
template <typename Work>
double of_many(motet::thread_pool& pool, std::size_t count, Work work) {
  constexpr std::size_t fibers = workers * fibers_of_each;
  return motet::run([&] {
    return cost(count, [&] {
      for (std::size_t i = 0; i < fibers; ++i) {
        pool.post([&work, each = count / fibers] {
          for (std::size_t k = 0; k < each; ++k) work();
        });
      }
      pool.drain();
    });
  });
}

double strand(std::size_t, std::size_t count) {
  motet::thread_pool pool(workers);
  motet::strand own(pool);
  motet::executor_bound<std::size_t> counter(own);
  return of_many(pool, count, [&] { counter.call([](std::size_t& its) { ++its; }); });
}

double mutex(std::size_t, std::size_t count) {
  motet::thread_pool pool(workers);
  motet::mutex lock;
  std::size_t counter = 0;
  return of_many(pool, count, [&] {
    const std::lock_guard in(lock);
    ++counter;
  });
}

double slice_free(std::size_t, std::size_t count) {
  motet::timeslice_lock lock;
  return motet::run([&] {
    return cost(count, [&] {
      for (std::size_t i = 0; i < count; ++i) const std::lock_guard in(lock);
    });
  });
}

double yield_if_due(std::size_t, std::size_t count) {
  motet::timeslice_lock lock;
  return motet::run([&] {
    const std::lock_guard in(lock);
    return cost(count, [&] {
      for (std::size_t i = 0; i < count; ++i) lock.yield_if_due();
    });
  });
}

/// Two threads that both always want to be in, and count there; a turn is 1 ms.
double slice_wanted(std::size_t, std::size_t count) {
  motet::timeslice_lock lock(1ms);
  std::size_t counter = 0;
  return cost(count, [&] {
    std::vector<motet::thread> threads;
    for (std::size_t i = 0; i < workers; ++i) {
      threads.emplace_back([&] {
        const std::lock_guard in(lock);
        while (counter < count) {
          ++counter;
          lock.yield_if_due();
        }
      });
    }
    for (const motet::thread& each : threads) each.await();
  });
}

constexpr bench::subject subjects[] = {
    {"portal", &portal},
    {"portal_to_loop", &portal_to_loop},
    {"strand", &strand},
    {"mutex", &mutex},
    {"slice_free", &slice_free},
    {"slice_wanted", &slice_wanted},
    {"yield_if_due", &yield_if_due},
};

}  // namespace

int main(int count, char** words) {
  return bench::main_of(subjects, count, words);
}
