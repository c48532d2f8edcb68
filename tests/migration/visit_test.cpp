// SPDX-License-Identifier: MIT
// Visits: executors that a fiber serves, and loops within loops. Whoever serves and whoever comes
// keep what is theirs.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <fstream>
#include <functional>
#include <motet/motet.hpp>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <utility>

#include "catch.hpp"
#include "places.hpp"
#include "quiet.hpp"
#include "sockets.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::await;
using testing::first_error;
using testing::idle_thread;
using testing::run_here;
using testing::this_thread;

namespace {

/// An executor that a fiber serves.
class served_by_fiber {
 public:
  template <typename F>
  void post(F f) {
    left_.push(std::function<void()>(std::move(f)));
  }
  void serve() {
    for (const std::function<void()>& each : left_) each();
  }
  void close() { left_.close(); }

 private:
  channel<std::function<void()>> left_{unbounded};
};

/// A loop whose functions may run it themselves, as a dialog of a user interface does.
class nested_loop {
 public:
  ~nested_loop() {
    post([this] { closed_ = true; });
    runs_.join();
  }
  template <typename F>
  void post(F f) {
    const std::lock_guard in(lock_);
    left_.emplace_back(std::move(f));
    changed_.notify_one();
  }
  void do_one() {
    std::unique_lock in(lock_);
    changed_.wait(in, [&] { return !left_.empty(); });
    const std::function<void()> next = std::move(left_.front());
    left_.pop_front();
    in.unlock();
    next();
  }

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> left_;
  bool closed_ = false;
  std::thread runs_{[this] {
    while (!closed_) do_one();
  }};
};

/// Sanitizers map as they go, and fault points are for those who map.
#if defined(MOTET_FAULTS)
constexpr bool maps_no_more = false;
#else
constexpr bool maps_no_more = !detail::sanitizer::enabled;
#endif

/// In kilobytes. Source: proc_pid_statm(5).
long address_space() {
  std::ifstream file("/proc/self/statm");
  long pages = 0;
  file >> pages;
  return pages * ::sysconf(_SC_PAGESIZE) / 1024;
}

}  // namespace

TEST_CASE("a fiber that serves an executor and one that visits keep what is theirs", "[visit]") {
  run_here([] {
    served_by_fiber desk;
    const int here = this_thread();
    std::atomic<int> thrown_on{0};
    std::atomic<int> place{0};
    motet::thread there(testing::quiet(), [&] { shield([&] { desk.serve(); }); });
    const int other = there.call([] { return this_thread(); });
    const auto visits = [&](auto does) {
      return [&, does] {
        const portal open(desk);
        ++place;
        try {
          does();
        } catch (...) {
          thrown_on = this_thread();
          throw;
        }
      };
    };
    SECTION("its cancellation") {
      const auto visitor = spin(visits([] { sleep(); }));
      await(place, 1);
      visitor.cancel();
      CHECK_THROWS_AS(visitor.await(), fiber_cancelled);
      CHECK(thrown_on == other);
    }
    SECTION("its deadline") {
      CHECK_FALSE(move_on_after(100ms, visits([] { sleep(); })));
      CHECK(thrown_on == other);
    }
    SECTION("its children") {
      const auto visitor = spin([&] {
        teleport(desk);
        spin([] { throw first_error(); });
        shield([] { snooze(); });
      });
      CHECK_THROWS_AS(visitor.await(), first_error);
    }
    SECTION("where it is already") {
      visits([&] {
        const portal again(desk);
        teleport(desk);
        CHECK(this_thread() == other);
      })();
    }
    SECTION("the desk is free when its visitor has gone on") {
      idle_thread further;
      visits([&] { teleport(further.itself); })();
      CHECK_THROWS_AS(visits([&] { const portal open(further.itself); })(), std::logic_error);
      spin([&] {
        teleport(desk);
        spin([&] {
          visits([] {})();  // would wait for ever if its parent's visit lasted
        });
        teleport(further.itself);
      }).await();
    }
    visits([] {})();
    CHECK(this_thread() == here);
    desk.close();
    there.await();
  });
}

TEST_CASE("who serves an executor and is to end ends the visit", "[visit]") {
  run_here([] {
    served_by_fiber desk;
    std::atomic<int> place{0};
    std::optional<motet::thread> there(std::in_place, testing::quiet(), [&] { desk.serve(); });
    const auto visitor = spin([&] {
      teleport(desk);
      ++place;
      sleep();
    });
    await(place, 1);
    there.reset();
    CHECK_THROWS_AS(visitor.await(), fiber_cancelled);
  });
}

TEST_CASE("a desk that a job or a child serves ends with it, whoever was there", "[visit]") {
  run_here([] {
    served_by_fiber desk;
    std::atomic<int> place{0};
    const auto visits = [&] {
      const portal open(desk);
      ++place;
      snooze();
    };
    SECTION("a thread's function") {
      std::optional<idle_thread> there(std::in_place);
      there->itself.post([&] { desk.serve(); });
      spin(visits).await();
      there.reset();
      CHECK(place == 1);
    }
    SECTION("a child that nobody has a handle to") {
      idle_thread there;
      there.itself.call([&] {
        group children;
        children.spin([&] { desk.serve(); });
        snooze();
        motet::thread other(testing::quiet(), visits);
        other.await();
      });
      CHECK(place == 1);
    }
  });
}

TEST_CASE("who serves hears that it is to end after anything else", "[visit]") {
  run_here([] {
    served_by_fiber desk;
    std::atomic<int> place{0};
    std::stop_source stop;
    std::optional<motet::thread> there(std::in_place, testing::quiet(), [&] {
      move_on_when_stopped(stop.get_token(), [&] { desk.serve(); });
    });
    const auto visitor = spin([&] {
      teleport(desk);
      ++place;
      sleep();
    });
    await(place, 1);
    stop.request_stop();
    there->call([] {});  // it has heard of that
    there.reset();
    CHECK_THROWS_AS(visitor.await(), fiber_cancelled);
  });
}

TEST_CASE("a shield of who serves is no reason to end the visit", "[visit]") {
  run_here([] {
    served_by_fiber desk;
    std::atomic<int> place{0};
    std::atomic<int> over{0};
    std::stop_source stop;
    std::optional<motet::thread> there(std::in_place, testing::quiet(), [&] {
      shield([&] { move_on_when_stopped(stop.get_token(), [&] { desk.serve(); }); });
      checkpoint();
    });
    const auto visitor = spin([&] {
      const portal open(desk);
      ++place;
      await(over, 1);
    });
    await(place, 1);
    there->cancel();
    stop.request_stop();
    there->call([] {});
    over = 1;
    visitor.await();
    CHECK_THROWS_AS(there->await(), fiber_cancelled);
  });
}

TEST_CASE("a visit within a visit leaves the first one as it was", "[visit]") {
  run_here([] {
    nested_loop loop;
    std::atomic<int> place{0};
    motet::mutex held;
    const auto first = spin([&] {
      const std::uint64_t own = current().id();
      const std::lock_guard holding(held);
      const portal open(loop);
      ++place;
      loop.do_one();
      const bool same = current().id() == own;
      held.unlock();
      held.lock();
      return same;
    });
    await(place, 1);
    spin([&] {
      const portal open(loop);
      ++place;
    }).await();
    CHECK(first.await());
    CHECK(place == 2);
  });
}

TEST_CASE("a visit opens nothing, and what the first has mapped is kept for the next", "[visit]") {
  run_here([] {
    testing::foreign_loop loop;
    std::size_t descriptors_there = 0;
    long mapped_there = 0;
    const auto visit = [&] {
      const portal open(loop);
      descriptors_there = testing::open_descriptors();
      mapped_there = address_space();
    };
    visit();
    const std::size_t descriptors = testing::open_descriptors();
    const long mapped = address_space();
    visit();
    CHECK(descriptors_there == descriptors);
    if (maps_no_more) CHECK(mapped_there - mapped < 500);
  });
}
