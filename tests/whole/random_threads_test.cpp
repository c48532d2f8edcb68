// SPDX-License-Identifier: MIT
// Random programs on four threads that spin, call and post to one another, give jobs to a pool,
// talk over a channel, travel, cancel, fail and end, while threads come and go. In the end nothing
// is lost, doubled, leaked or stuck. A failure prints its seed; MOTET_TEST_SEED begins with that
// one, and MOTET_TEST_SECONDS says how long.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <motet/motet.hpp>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "quiet.hpp"
#include "support.hpp"
#include "whole/meeting_points.hpp"

using namespace motet;
using namespace std::chrono_literals;

namespace {

struct planned_failure {};

options quiet() {
  options chosen = testing::quiet();
  chosen.on_unhandled = [](const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const planned_failure&) {
      // Of a fiber whose thread was ending.
    }
  };
  return chosen;
}

/// What is alive, and what has passed through the channel.
struct balance {
  std::atomic<std::int64_t> bodies{0};
  std::atomic<std::int64_t> items_alive{0};
  std::atomic<std::uint64_t> pushed{0};
  std::atomic<std::uint64_t> popped{0};
  std::atomic<std::uint64_t> sum_pushed{0};
  std::atomic<std::uint64_t> sum_popped{0};
  std::atomic<std::uint64_t> steps{0};
};

/// Counts its lives; moved from, it has none.
class counted {
 public:
  explicit counted(std::atomic<std::int64_t>& lives) : lives_(&lives) { ++lives; }
  counted(counted&& from) noexcept : lives_(std::exchange(from.lives_, nullptr)) {}
  counted& operator=(counted&& from) noexcept {
    std::swap(lives_, from.lives_);
    return *this;
  }
  ~counted() {
    if (lives_ != nullptr) --*lives_;
  }

 private:
  std::atomic<std::int64_t>* lives_;
};

struct item {
  std::uint64_t number = 0;
  counted life;
};

class world {
 public:
  world() {
    for (auto& each : threads_) each = fresh();
  }

  /// Runs programs on all threads for a while, then ends them.
  void run_it(std::uint32_t seed);

  balance counts;
  testing::meeting_points points;

 private:
  using shared_thread = std::shared_ptr<motet::thread>;

  class program;

  static shared_thread fresh() {
    return std::make_shared<motet::thread>(quiet(), [] {
      for (;;) {
        try {
          sleep();
        } catch (const planned_failure&) {
          // Of something that was posted.
        }
      }
    });
  }

  shared_thread thread_at(std::size_t place) {
    const std::lock_guard in(guarding_);
    return threads_[place];
  }

  void replace(std::size_t place) {
    shared_thread other = fresh();
    const std::lock_guard in(guarding_);
    if (ending_) return;
    std::swap(threads_[place], other);
    other->cancel("replaced");
    replaced_.push_back(std::move(other));
  }

  void end_threads();

  std::mutex guarding_;
  std::array<shared_thread, 4> threads_;
  std::vector<shared_thread> replaced_;
  bool ending_ = false;
  channel<item> items_{4};
  thread_pool pool_{2, "world"};
  strand alone_{pool_};
  std::uint64_t entered_ = 0;  // on the strand alone
};

/// What one fiber does; its random numbers are its own.
class world::program {
 public:
  program(world& around, std::uint32_t seed, int depth)
      : world_(&around), random_(seed + 1), depth_(depth), life_(around.counts.bodies) {}

  void operator()() {
    for (auto left = pick(8); left > 0; --left) {
      ++world_->counts.steps;
      try {
        step();
      } catch (const fiber_cancelled&) {
      } catch (const executor_stopped&) {
      } catch (const channel_closed&) {
      } catch (const timed_out&) {
      }
    }
    if (pick(8) == 0) throw planned_failure();
  }

 private:
  std::uint32_t pick(std::uint32_t below) { return static_cast<std::uint32_t>(random_() % below); }
  std::chrono::microseconds moment() { return std::chrono::microseconds(pick(200)); }
  program child() { return {*world_, static_cast<std::uint32_t>(random_()), depth_ - 1}; }
  shared_thread some_thread() { return world_->thread_at(pick(4)); }

  void step();
  void spin_elsewhere();
  void call_elsewhere();
  void give_job();
  void go_there_and_back();
  void enter_strand();
  void push();
  void pop();

  world* world_;
  std::minstd_rand random_;
  int depth_;
  counted life_;
};

void world::program::step() {
  const bool deeper = depth_ > 0;
  switch (pick(22)) {
    case 0:
    case 1:
      snooze();
      return;
    case 2:
      sleep_for(moment());
      return;
    case 3:
    case 4:
      push();
      return;
    case 5:
    case 6:
      pop();
      return;
    case 7:
      if (deeper) move_on_after(moment(), [&] { child()(); });
      return;
    case 8:
    case 9:
      if (deeper) spin_elsewhere();
      return;
    case 10:
      if (deeper) call_elsewhere();
      return;
    case 11:
      if (deeper) give_job();
      return;
    case 12:
      if (deeper) some_thread()->post(child());
      return;
    case 13:
      if (pick(40) == 0) world_->replace(pick(4));
      return;
    case 14:
    case 15:
      if (deeper) go_there_and_back();
      return;
    case 16:
      enter_strand();
      return;
    case 17: {
      const auto other = some_thread();
      teleport(*other);
      return;
    }
    default:
      world_->points.visit(static_cast<std::uint32_t>(random_()), moment(), [&] {
        if (deeper) child()();
      });
  }
}

void world::program::spin_elsewhere() {
  auto spun = some_thread()->spin(child());
  if (pick(2) == 0) snooze();
  if (pick(3) == 0) spun.cancel("another fiber wanted it");
  if (pick(3) == 0) spun.raise(std::make_exception_ptr(planned_failure()));
  if (pick(3) != 0) spun.await();
}

void world::program::call_elsewhere() {
  const auto other = some_thread();
  if (pick(2) == 0) {
    other->call(child());
  } else {
    with_timeout(moment(), [&] { other->call(child()); });
  }
}

void world::program::give_job() {
  auto done = world_->pool_.submit([its = child(), number = random_()]() mutable {
    its();
    return number;
  });
  if (pick(3) == 0) return;
  if (pick(2) == 0) {
    done.get();
  } else {
    move_on_after(moment(), [&] { done.wait(); });
  }
}

void world::program::go_there_and_back() {
  const auto other = some_thread();
  const auto visit = [&] {
    const portal there(*other);
    if (pick(2) == 0) {
      child()();
    } else {
      sleep_for(moment());
    }
  };
  if (pick(2) == 0) {
    visit();
  } else {
    with_timeout(moment(), visit);
  }
}

void world::program::enter_strand() {
  const portal in(world_->alone_);
  ++world_->entered_;
  if (pick(2) == 0) push();
}

void world::program::push() {
  const std::uint64_t number = random_();
  balance& totals = world_->counts;
  move_on_after(moment(), [&] {
    world_->items_.push({number, counted(totals.items_alive)});
    totals.sum_pushed += number;
    ++totals.pushed;
  });
}

void world::program::pop() {
  balance& totals = world_->counts;
  move_on_after(moment(), [&] {
    if (const auto got = world_->items_.pop()) {
      totals.sum_popped += got->number;
      ++totals.popped;
    }
  });
}

void world::run_it(std::uint32_t seed) {
  std::minstd_rand random(seed + 1);
  std::array<fiber<void>, 8> roots;
  for (auto& each : roots) {
    while (!each) {
      try {
        program body(*this, static_cast<std::uint32_t>(random()), 3);
        each = thread_at(random() % 4)->spin(std::move(body));
      } catch (const executor_stopped&) {
        // That thread has just been replaced.
      }
    }
  }
  for (auto& each : roots) {
    try {
      each.await();
    } catch (const planned_failure&) {
    } catch (const fiber_cancelled&) {
    }
  }
  pool_.stop(thread_pool::stop_mode::discard);
  end_threads();
  items_.close();
  while (const auto left = items_.pop()) {
    counts.sum_popped += left->number;
    ++counts.popped;
  }
}

/// With what was posted to them.
void world::end_threads() {
  {
    const std::lock_guard in(guarding_);
    ending_ = true;
  }
  for (const auto& each : threads_) each->cancel("the world ends");
  for (const auto& each : threads_) replaced_.push_back(each);
  for (const auto& each : replaced_) {
    try {
      each->await();
    } catch (const fiber_cancelled&) {
    } catch (const planned_failure&) {
      // Of something posted that ended with its thread.
    }
  }
}

/// Ends the process with a word if a world is stuck.
class watchdog {
 public:
  watchdog()
      : watching_([this] {
          for (int quiet_for = 0; !over_; ++quiet_for) {
            std::this_thread::sleep_for(100ms);
            if (told_.exchange(false)) quiet_for = 0;
            if (quiet_for < 300) continue;
            std::fprintf(stderr, "a world is stuck; seed %u\n", seed_.load());
            std::abort();
          }
        }) {}
  ~watchdog() {
    over_ = true;
    watching_.join();
  }
  void begin(std::uint32_t seed) {
    seed_ = seed;
    told_ = true;
  }

 private:
  std::atomic<bool> over_{false};
  std::atomic<bool> told_{true};
  std::atomic<std::uint32_t> seed_{0};
  std::thread watching_;
};

std::uint64_t number_in(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace

TEST_CASE("worlds of random programs on four threads end with nothing lost", "[thread][stress]") {
  const auto length = std::chrono::seconds(number_in("MOTET_TEST_SECONDS", testing::scaled(60, 2)));
  auto seed = static_cast<std::uint32_t>(number_in("MOTET_TEST_SEED", 1));
  const auto end = std::chrono::steady_clock::now() + length;
  std::uint64_t steps = 0;
  std::uint64_t popped = 0;
  watchdog watching;
  for (; std::chrono::steady_clock::now() < end; ++seed) {
    watching.begin(seed);
    INFO("seed " << seed);
    run(quiet(), [&] {
      auto one = std::make_unique<world>();
      shield([&] { one->run_it(seed); });  // a failure is thrown when its fiber is awaited
      steps += one->counts.steps;
      popped += one->counts.popped;
      CHECK(one->counts.pushed == one->counts.popped);
      CHECK(one->counts.sum_pushed == one->counts.sum_popped);
      CHECK(one->counts.items_alive == 0);
      CHECK(one->counts.bodies == 0);
      CHECK(one->points.wrong() == "");
    });
  }
  WARN(seed << " worlds, " << steps << " steps, " << popped << " items");
  CHECK(steps > 0);
}
