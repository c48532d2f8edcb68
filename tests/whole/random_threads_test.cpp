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
  options config = testing::quiet();
  config.on_unhandled = [](const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const planned_failure&) {
      // Of a fiber whose thread was ending.
    }
  };
  return config;
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
  counted(counted&& source) noexcept : lives_(std::exchange(source.lives_, nullptr)) {}
  counted& operator=(counted&& source) noexcept {
    std::swap(lives_, source.lives_);
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
    for (auto& slot : threads_) slot = fresh();
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
    const std::lock_guard guard(guarding_);
    return threads_[place];
  }

  void replace(std::size_t place) {
    shared_thread replacement = fresh();
    const std::lock_guard guard(guarding_);
    if (ending_) return;
    std::swap(threads_[place], replacement);
    replacement->cancel("replaced");
    replaced_.push_back(std::move(replacement));
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
  program(world& home, std::uint32_t seed, int depth)
      : world_(&home), random_(seed + 1), depth_(depth), life_(home.counts.bodies) {}

  void operator()() {
    for (auto remaining = pick(8); remaining > 0; --remaining) {
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
  std::uint32_t pick(std::uint32_t limit) { return static_cast<std::uint32_t>(random_() % limit); }
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
      const auto target = some_thread();
      teleport(*target);
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
  const auto target = some_thread();
  if (pick(2) == 0) {
    target->call(child());
  } else {
    with_timeout(moment(), [&] { target->call(child()); });
  }
}

void world::program::give_job() {
  auto result = world_->pool_.submit([subprogram = child(), number = random_()]() mutable {
    subprogram();
    return number;
  });
  if (pick(3) == 0) return;
  if (pick(2) == 0) {
    result.get();
  } else {
    move_on_after(moment(), [&] { result.wait(); });
  }
}

void world::program::go_there_and_back() {
  const auto target = some_thread();
  const auto visit = [&] {
    const portal place(*target);
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
  const portal guard(world_->alone_);
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
    if (const auto item = world_->items_.pop()) {
      totals.sum_popped += item->number;
      ++totals.popped;
    }
  });
}

void world::run_it(std::uint32_t seed) {
  std::minstd_rand random(seed + 1);
  std::array<fiber<void>, 8> roots;
  for (auto& root : roots) {
    while (!root) {
      try {
        program body(*this, static_cast<std::uint32_t>(random()), 3);
        root = thread_at(random() % 4)->spin(std::move(body));
      } catch (const executor_stopped&) {
        // That thread has just been replaced.
      }
    }
  }
  for (auto& root : roots) {
    try {
      root.await();
    } catch (const planned_failure&) {
    } catch (const fiber_cancelled&) {
    }
  }
  pool_.stop(thread_pool::stop_mode::discard);
  end_threads();
  items_.close();
  while (const auto item = items_.pop()) {
    counts.sum_popped += item->number;
    ++counts.popped;
  }
}

/// With what was posted to them.
void world::end_threads() {
  {
    const std::lock_guard guard(guarding_);
    ending_ = true;
  }
  for (const auto& slot : threads_) slot->cancel("the world ends");
  for (const auto& slot : threads_) replaced_.push_back(slot);
  for (const auto& thread_handle : replaced_) {
    try {
      thread_handle->await();
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
          for (int quiet_for = 0; !finished_; ++quiet_for) {
            std::this_thread::sleep_for(100ms);
            if (is_notified_.exchange(false)) quiet_for = 0;
            if (quiet_for < 300) continue;
            std::fprintf(stderr, "a world is stuck; seed %u\n", seed_.load());
            std::abort();
          }
        }) {}
  ~watchdog() {
    finished_ = true;
    watching_.join();
  }
  void begin(std::uint32_t seed) {
    seed_ = seed;
    is_notified_ = true;
  }

 private:
  std::atomic<bool> finished_{false};
  std::atomic<bool> is_notified_{true};
  std::atomic<std::uint32_t> seed_{0};
  std::thread watching_;
};

std::uint64_t number_in(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace

TEST_CASE("threads: random programs on four threads end with nothing lost", "[thread][stress]") {
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
      auto scenario = std::make_unique<world>();
      shield([&] { scenario->run_it(seed); });  // a failure is thrown when its fiber is awaited
      steps += scenario->counts.steps;
      popped += scenario->counts.popped;
      CHECK(scenario->counts.pushed == scenario->counts.popped);
      CHECK(scenario->counts.sum_pushed == scenario->counts.sum_popped);
      CHECK(scenario->counts.items_alive == 0);
      CHECK(scenario->counts.bodies == 0);
      CHECK(scenario->points.wrong() == "");
    });
  }
  WARN(seed << " worlds, " << steps << " steps, " << popped << " items");
  CHECK(steps > 0);
}
