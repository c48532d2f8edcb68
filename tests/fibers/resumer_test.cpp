// SPDX-License-Identifier: MIT
// suspend_with() and its resumer: called once, in time or too late, here or on another thread.
#include <array>
#include <atomic>
#include <memory>
#include <motet/motet.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "strangers.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::box;
using testing::first_error;
using testing::strangers;
using testing::among_strangers::run_here;

TEST_CASE("suspend_with() returns the value that its resumer was called with", "[resumer]") {
  run([] {
    CHECK(suspend_with<int>([](resumer<int> r) { r(1); }) == 1);
    const std::string text = suspend_with<std::string>([](resumer<std::string> r) {
      spin([r = std::make_shared<resumer<std::string>>(std::move(r))] {
        sleep_for(1ms);
        (*r)("later");
      });
    });
    CHECK(text == "later");
    const auto pointer = suspend_with<std::unique_ptr<int>>(
        [](resumer<std::unique_ptr<int>> r) { r(std::make_unique<int>(3)); });
    CHECK(*pointer == 3);
    const auto many = suspend_with<std::array<int, 100>>([](resumer<std::array<int, 100>> r) {
      std::array<int, 100> fours;
      fours.fill(4);
      r(fours);
    });
    CHECK(many[99] == 4);
  });
}

TEST_CASE("suspend_with() is a switchpoint even when it is resumed at once", "[resumer]") {
  run([] {
    bool other_ran = false;
    spin([&] { other_ran = true; });
    suspend_with([](resumer<void> r) { r(); });
    CHECK(other_ran);
  });
}

TEST_CASE("resumer: dropping it unused breaks the wait", "[resumer]") {
  run([] {
    CHECK_THROWS_AS(suspend_with([](resumer<void>) {}), broken_resumer);
    std::optional<resumer<int>> stored;
    auto f = spin([&] {
      CHECK_THROWS_AS(suspend_with<int>([&](resumer<int> r) { stored.emplace(std::move(r)); }),
                      broken_resumer);
    });
    snooze();
    CHECK(f.state() == fiber_state::waiting);
    stored.reset();
    CHECK(f.state() == fiber_state::runnable);
    f.await();
  });
}

TEST_CASE("resumer can be called once", "[resumer]") {
  run([] {
    std::optional<resumer<int>> stored;
    auto f = spin(
        [&] { return suspend_with<int>([&](resumer<int> r) { stored.emplace(std::move(r)); }); });
    snooze();
    (*stored)(1);
    CHECK_THROWS_AS((*stored)(2), std::logic_error);
    CHECK(f.await() == 1);
  });
}

TEST_CASE("resumer does nothing when it is called after the wait was interrupted", "[resumer]") {
  run([] {
    std::vector<resumer<int>> stored;
    auto keep = [&](resumer<int> r) { stored.push_back(std::move(r)); };
    auto f = spin([&] {
      CHECK_THROWS_AS(suspend_with<int>(keep), first_error);
      return suspend_with<int>(keep);
    });
    snooze();
    f.raise(first_error());
    snooze();
    REQUIRE(stored.size() == 2);
    stored[0](1);
    CHECK(f.state() == fiber_state::waiting);
    stored[1](2);
    CHECK(f.await() == 2);
    stored.clear();
  });
}

TEST_CASE("suspend_with() throws what its callable throws", "[resumer]") {
  run([] {
    CHECK_THROWS_AS(suspend_with([](resumer<void>) { throw first_error(); }), first_error);
    std::optional<resumer<void>> stored;
    CHECK_THROWS_AS(suspend_with([&](resumer<void> r) {
                      stored.emplace(std::move(r));
                      throw first_error();
                    }),
                    first_error);
    (*stored)();
    bool other_ran = false;
    spin([&] { other_ran = true; });
    suspend_with([](resumer<void> r) { r(); });
    CHECK(other_ran);
  });
}

TEST_CASE("resumer works from another thread", "[resumer]") {
  run_here([] {
    strangers threads;
    const auto later = [&threads](auto value) {
      return [&threads, value](resumer<decltype(value)> r) {
        threads.start([r = std::move(r), value]() mutable { r(value); });
      };
    };
    CHECK(suspend_with<int>(later(5)) == 5);
    CHECK(suspend_with<std::string>(later(std::string("a longer text than fits in place"))) ==
          "a longer text than fits in place");
    std::array<int, 100> sevens{};
    sevens.fill(7);
    CHECK(suspend_with<std::array<int, 100>>(later(sevens))[99] == 7);
    suspend_with([&](resumer<void> r) { threads.start([r = std::move(r)]() mutable { r(); }); });
  });
}

TEST_CASE("resumer: dropping it on another thread breaks the wait", "[resumer]") {
  run_here([] {
    strangers threads;
    CHECK_THROWS_AS(
        suspend_with<int>([&](resumer<int> r) { threads.start([r = std::move(r)] {}); }),
        broken_resumer);
  });
}

TEST_CASE("resumer throws when it is called twice on another thread", "[resumer]") {
  run_here([] {
    std::atomic<bool> refused{false};
    strangers threads;
    const int value = suspend_with<int>([&](resumer<int> r) {
      threads.start([&refused, r = std::move(r)]() mutable {
        r(1);
        try {
          r(2);
        } catch (const std::logic_error&) {
          refused = true;
        }
      });
    });
    threads.join();
    CHECK(value == 1);
    CHECK(refused);
  });
}

TEST_CASE("resumer: a late call from another thread wakes no other wait", "[resumer]") {
  run_here([] {
    std::vector<resumer<int>> stored;
    const auto keep = [&](resumer<int> r) { stored.push_back(std::move(r)); };
    auto f = spin([&] {
      CHECK_THROWS_AS(suspend_with<int>(keep), first_error);
      return suspend_with<int>(keep);
    });
    snooze();
    f.raise(first_error());
    snooze();
    REQUIRE(stored.size() == 2);
    std::thread([late = std::move(stored[0])]() mutable { late(1); }).join();
    sleep_for(1ms);
    CHECK(f.state() == fiber_state::waiting);
    std::thread([right = std::move(stored[1])]() mutable { right(2); }).join();
    CHECK(f.await() == 2);
  });
}

TEST_CASE("resumer: a call from another thread does nothing after the home thread has ended",
          "[resumer]") {
  std::optional<resumer<int>> late;
  run_here([&] {
    spin([&] { (void)suspend_with<int>([&](resumer<int> r) { late.emplace(std::move(r)); }); });
    snooze();
  });
  std::thread([&] { (*late)(1); }).join();
  late.reset();
}

TEST_CASE("suspend_with() is refused within the callable of another suspend_with()", "[resumer]") {
  run_here([] {
    const int value = suspend_with<int>([](resumer<int> outer) {
      CHECK_THROWS_AS(suspend_with([](resumer<void> inner) { inner(); }), std::logic_error);
      outer(1);
    });
    CHECK(value == 1);
  });
}

TEST_CASE("resumer: threads resume a thousand waits while the home thread goes to sleep",
          "[resumer][stress]") {
  run_here([] {
    const auto rounds = testing::scaled(100'000, 5'000);
    box<resumer<std::size_t>> mailbox;
    std::atomic<bool> stop_requested{false};
    strangers threads;
    for (int i = 0; i < 2; ++i) {
      threads.start([&] {
        for (std::size_t number = 1; !stop_requested;) {
          if (auto next = mailbox.take()) {
            (*next)(number++);
          } else {
            std::this_thread::yield();
          }
        }
      });
    }
    std::size_t resumptions = 0;
    for (std::size_t i = 0; i < rounds; ++i) {
      if (suspend_with<std::size_t>([&](resumer<std::size_t> r) { mailbox.put(std::move(r)); }) >
          0) {
        ++resumptions;
      }
    }
    stop_requested = true;
    threads.join();
    CHECK(resumptions == rounds);
  });
}
