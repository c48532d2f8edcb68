// SPDX-License-Identifier: MIT
// Which worker gets a job, of SIZE: a scan of all loads, as thread_pool does it, or an indexed heap
// of them under a lock. One iteration chooses a worker, whose load falls again 100 choices later,
// on the same thread, or on another one, as in a pool.
#include <array>
#include <atomic>
#include <memory>
#include <motet/detail/sync/sharing.hpp>
#include <mutex>
#include <thread>
#include <vector>

#include "core/time/timer_queue.hpp"
#include "measure.hpp"
#include "threads/pool_state.hpp"

namespace {

using bench::cost;
using motet::detail::timer;

class scanned {
 public:
  explicit scanned(std::size_t workers) : pool_(workers) {}
  std::size_t choose() { return pool_.choose(); }
  void finish(std::size_t number) { pool_.loads[number].completions.fetch_add(1); }

 private:
  motet::detail::pool_state pool_;
};

/// The timers' heap; what is due first is the load.
class heaped {
 public:
  explicit heaped(std::size_t workers) : workers_(workers) {
    order_.reserve(workers);
    for (std::size_t i = 0; i < workers; ++i) {
      workers_[i].order = i;
      order_.push(workers_[i]);
    }
  }
  std::size_t choose() {
    const std::lock_guard in(lock_);
    timer& least = *order_.first();
    change(least, 1);
    return least.order;
  }
  void finish(std::size_t number) {
    const std::lock_guard in(lock_);
    change(workers_[number], -1);
  }

 private:
  void change(timer& worker, int by) {
    worker.due += motet::clock::duration(by);
    order_.update(worker);
  }

  motet::detail::shared_policy lock_;
  std::vector<timer> workers_;
  motet::detail::timer_heap order_;
};

template <typename Choice>
void give(Choice& choice, std::size_t count) {
  std::array<std::size_t, 100> given{};
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t& place = given[i % given.size()];
    if (i >= given.size()) choice.finish(place);
    place = choice.choose();
  }
}

template <typename Choice>
double one_giver(std::size_t workers, std::size_t count) {
  Choice choice(workers);
  return cost(count, [&] { give(choice, count); });
}

template <typename Choice>
double two_givers(std::size_t workers, std::size_t count) {
  Choice choice(workers);
  return cost(count, [&] {
    std::thread other([&] { give(choice, count / 2); });
    give(choice, count / 2);
    other.join();
  });
}

/// Of what one thread writes and the other one takes.
class ring {
 public:
  bool push(std::size_t number) {
    const std::size_t at = written_.load(std::memory_order_relaxed);
    if (at - taken_seen_ == places.size()) {
      taken_seen_ = taken_.load(std::memory_order_acquire);
      if (at - taken_seen_ == places.size()) return false;
    }
    places[at % places.size()] = number;
    written_.store(at + 1, std::memory_order_release);
    return true;
  }
  template <typename F>
  void take_all(F with_each) {
    std::size_t at = taken_.load(std::memory_order_relaxed);
    const std::size_t end = written_.load(std::memory_order_acquire);
    for (; at != end; ++at) with_each(places[at % places.size()]);
    taken_.store(end, std::memory_order_release);
  }

 private:
  std::array<std::size_t, 128> places{};
  alignas(64) std::atomic<std::size_t> written_{0};
  std::size_t taken_seen_ = 0;
  alignas(64) std::atomic<std::size_t> taken_{0};
};

template <typename Choice>
double finished_elsewhere(std::size_t workers, std::size_t count) {
  Choice choice(workers);
  return cost(count, [&] {
    ring given;
    std::thread finisher([&] {
      std::size_t finished = 0;
      while (finished < count) {
        given.take_all([&](std::size_t number) {
          choice.finish(number);
          ++finished;
        });
      }
    });
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t chosen = choice.choose();
      while (!given.push(chosen)) continue;
    }
    finisher.join();
  });
}

constexpr bench::subject subjects[] = {
    {"scan", &one_giver<scanned>},
    {"heap", &one_giver<heaped>},
    {"scan_two", &two_givers<scanned>},
    {"heap_two", &two_givers<heaped>},
    {"scan_apart", &finished_elsewhere<scanned>},
    {"heap_apart", &finished_elsewhere<heaped>},
};

}  // namespace

int main(int count, char** words) {
  return bench::main_of(subjects, count, words);
}
