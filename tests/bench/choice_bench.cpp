// SPDX-License-Identifier: MIT
// Which worker gets a job, of SIZE: a scan of all loads, as thread_pool does it, or an indexed heap
// of them under a lock. One iteration chooses a worker, whose load falls again 100 choices later.
#include <array>
#include <memory>
#include <motet/detail/sharing.hpp>
#include <mutex>
#include <thread>
#include <vector>

#include "measure.hpp"
#include "pool_state.hpp"
#include "timer_heap.hpp"

namespace {

using bench::cost;
using motet::detail::timer;

class scanned {
 public:
  explicit scanned(std::size_t workers) : pool_(workers) {}
  std::size_t choose() { return pool_.choose(); }
  void finish(std::size_t number) { pool_.loads[number].finished.fetch_add(1); }

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

  motet::detail::any_thread lock_;
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

constexpr bench::subject subjects[] = {
    {"scan", &one_giver<scanned>},
    {"heap", &one_giver<heaped>},
    {"scan_two", &two_givers<scanned>},
    {"heap_two", &two_givers<heaped>},
};

}  // namespace

int main(int count, char** words) {
  return bench::main_of(subjects, count, words);
}
