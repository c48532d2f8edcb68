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
    functions_.push(std::function<void()>(std::move(f)));
  }
  void serve() {
    for (const std::function<void()>& function : functions_) function();
  }
  void close() { functions_.close(); }

 private:
  channel<std::function<void()>> functions_{unbounded};
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
    const std::lock_guard guard(lock_);
    functions_.emplace_back(std::move(f));
    condition_.notify_one();
  }
  void do_one() {
    std::unique_lock guard(lock_);
    condition_.wait(guard, [&] { return !functions_.empty(); });
    const std::function<void()> next = std::move(functions_.front());
    functions_.pop_front();
    guard.unlock();
    next();
  }

 private:
  std::mutex lock_;
  std::condition_variable condition_;
  std::deque<std::function<void()>> functions_;
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

TEST_CASE("executor: a serving fiber and its visitor keep their own state", "[visit]") {
  run_here([] {
    served_by_fiber desk;
    const int home = this_thread();
    std::atomic<int> thrown_on{0};
    std::atomic<int> place{0};
    motet::thread server(testing::quiet(), [&] { shield([&] { desk.serve(); }); });
    const int remote = server.call([] { return this_thread(); });
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
      CHECK(thrown_on == remote);
    }
    SECTION("its deadline") {
      CHECK_FALSE(move_on_after(100ms, visits([] { sleep(); })));
      CHECK(thrown_on == remote);
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
        CHECK(this_thread() == remote);
      })();
    }
    SECTION("the desk is free when its visitor has gone on") {
      idle_thread further;
      visits([&] { teleport(further.thread); })();
      CHECK_THROWS_AS(visits([&] { const portal open(further.thread); })(), std::logic_error);
      spin([&] {
        teleport(desk);
        spin([&] {
          visits([] {})();  // would wait for ever if its parent's visit lasted
        });
        teleport(further.thread);
      }).await();
    }
    visits([] {})();
    CHECK(this_thread() == home);
    desk.close();
    server.await();
  });
}

TEST_CASE("executor: an interruption of the serving fiber ends the visit", "[visit]") {
  run_here([] {
    served_by_fiber desk;
    std::atomic<int> place{0};
    std::optional<motet::thread> server(std::in_place, testing::quiet(), [&] { desk.serve(); });
    const auto visitor = spin([&] {
      teleport(desk);
      ++place;
      sleep();
    });
    await(place, 1);
    server.reset();
    CHECK_THROWS_AS(visitor.await(), fiber_cancelled);
  });
}

TEST_CASE("executor: one that a job or a child serves ends with it, even during a visit",
          "[visit]") {
  run_here([] {
    served_by_fiber desk;
    std::atomic<int> place{0};
    const auto visits = [&] {
      const portal open(desk);
      ++place;
      snooze();
    };
    SECTION("a thread's function") {
      std::optional<idle_thread> server(std::in_place);
      server->thread.post([&] { desk.serve(); });
      spin(visits).await();
      server.reset();
      CHECK(place == 1);
    }
    SECTION("a child that nobody has a handle to") {
      idle_thread worker;
      worker.thread.call([&] {
        group children;
        children.spin([&] { desk.serve(); });
        snooze();
        motet::thread visitor(testing::quiet(), visits);
        visitor.await();
      });
      CHECK(place == 1);
    }
  });
}

TEST_CASE("executor: an interruption reaches the serving fiber after anything else", "[visit]") {
  run_here([] {
    served_by_fiber desk;
    std::atomic<int> place{0};
    std::stop_source stop;
    std::optional<motet::thread> server(std::in_place, testing::quiet(), [&] {
      move_on_when_stopped(stop.get_token(), [&] { desk.serve(); });
    });
    const auto visitor = spin([&] {
      teleport(desk);
      ++place;
      sleep();
    });
    await(place, 1);
    stop.request_stop();
    server->call([] {});  // it has heard of that
    server.reset();
    CHECK_THROWS_AS(visitor.await(), fiber_cancelled);
  });
}

TEST_CASE("executor: a shield of the serving fiber does not end the visit", "[visit]") {
  run_here([] {
    served_by_fiber desk;
    std::atomic<int> place{0};
    std::atomic<int> finishes{0};
    std::stop_source stop;
    std::optional<motet::thread> server(std::in_place, testing::quiet(), [&] {
      shield([&] { move_on_when_stopped(stop.get_token(), [&] { desk.serve(); }); });
      checkpoint();
    });
    const auto visitor = spin([&] {
      const portal open(desk);
      ++place;
      await(finishes, 1);
    });
    await(place, 1);
    server->cancel();
    stop.request_stop();
    server->call([] {});
    finishes = 1;
    visitor.await();
    CHECK_THROWS_AS(server->await(), fiber_cancelled);
  });
}

TEST_CASE("executor: a visit within a visit leaves the first one unchanged", "[visit]") {
  run_here([] {
    nested_loop loop;
    std::atomic<int> place{0};
    motet::mutex lock;
    const auto first = spin([&] {
      const std::uint64_t id = current().id();
      const std::lock_guard holding(lock);
      const portal open(loop);
      ++place;
      loop.do_one();
      const bool is_same = current().id() == id;
      lock.unlock();
      lock.lock();
      return is_same;
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

TEST_CASE("executor: a second visit opens no descriptor and maps no memory", "[visit]") {
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
