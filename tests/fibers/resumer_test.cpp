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

TEST_CASE("suspend_with gives the value that its resumer was called with", "[resumer]") {
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

TEST_CASE("suspend_with is a switchpoint also when it is resumed at once", "[resumer]") {
  run([] {
    bool other_ran = false;
    spin([&] { other_ran = true; });
    suspend_with([](resumer<void> r) { r(); });
    CHECK(other_ran);
  });
}

TEST_CASE("a resumer that is dropped unused breaks the wait", "[resumer]") {
  run([] {
    CHECK_THROWS_AS(suspend_with([](resumer<void>) {}), broken_resumer);
    std::optional<resumer<int>> kept;
    auto f = spin([&] {
      CHECK_THROWS_AS(suspend_with<int>([&](resumer<int> r) { kept.emplace(std::move(r)); }),
                      broken_resumer);
    });
    snooze();
    CHECK(f.state() == fiber_state::waiting);
    kept.reset();
    CHECK(f.state() == fiber_state::runnable);
    f.await();
  });
}

TEST_CASE("a resumer can be called once", "[resumer]") {
  run([] {
    std::optional<resumer<int>> kept;
    auto f = spin(
        [&] { return suspend_with<int>([&](resumer<int> r) { kept.emplace(std::move(r)); }); });
    snooze();
    (*kept)(1);
    CHECK_THROWS_AS((*kept)(2), std::logic_error);
    CHECK(f.await() == 1);
  });
}

TEST_CASE("a resumer that is called after the wait was interrupted does nothing", "[resumer]") {
  run([] {
    std::vector<resumer<int>> kept;
    auto keep = [&](resumer<int> r) { kept.push_back(std::move(r)); };
    auto f = spin([&] {
      CHECK_THROWS_AS(suspend_with<int>(keep), first_error);
      return suspend_with<int>(keep);
    });
    snooze();
    f.raise(first_error());
    snooze();
    REQUIRE(kept.size() == 2);
    kept[0](1);
    CHECK(f.state() == fiber_state::waiting);
    kept[1](2);
    CHECK(f.await() == 2);
    kept.clear();
  });
}

TEST_CASE("what the callable of suspend_with throws is thrown there", "[resumer]") {
  run([] {
    CHECK_THROWS_AS(suspend_with([](resumer<void>) { throw first_error(); }), first_error);
    std::optional<resumer<void>> kept;
    CHECK_THROWS_AS(suspend_with([&](resumer<void> r) {
                      kept.emplace(std::move(r));
                      throw first_error();
                    }),
                    first_error);
    (*kept)();
    bool other_ran = false;
    spin([&] { other_ran = true; });
    suspend_with([](resumer<void> r) { r(); });
    CHECK(other_ran);
  });
}

TEST_CASE("a resumer works from another thread", "[resumer]") {
  run_here([] {
    strangers others;
    const auto later = [&others](auto value) {
      return [&others, value](resumer<decltype(value)> r) {
        others.start([r = std::move(r), value]() mutable { r(value); });
      };
    };
    CHECK(suspend_with<int>(later(5)) == 5);
    CHECK(suspend_with<std::string>(later(std::string("a longer text than fits in place"))) ==
          "a longer text than fits in place");
    std::array<int, 100> sevens{};
    sevens.fill(7);
    CHECK(suspend_with<std::array<int, 100>>(later(sevens))[99] == 7);
    suspend_with([&](resumer<void> r) { others.start([r = std::move(r)]() mutable { r(); }); });
  });
}

TEST_CASE("a resumer that is dropped on another thread breaks the wait", "[resumer]") {
  run_here([] {
    strangers others;
    CHECK_THROWS_AS(suspend_with<int>([&](resumer<int> r) { others.start([r = std::move(r)] {}); }),
                    broken_resumer);
  });
}

TEST_CASE("a resumer called twice on another thread says so", "[resumer]") {
  run_here([] {
    std::atomic<bool> refused{false};
    strangers others;
    const int got = suspend_with<int>([&](resumer<int> r) {
      others.start([&refused, r = std::move(r)]() mutable {
        r(1);
        try {
          r(2);
        } catch (const std::logic_error&) {
          refused = true;
        }
      });
    });
    others.join();
    CHECK(got == 1);
    CHECK(refused);
  });
}

TEST_CASE("a resumer called from afar after its wait was over wakes no other wait", "[resumer]") {
  run_here([] {
    std::vector<resumer<int>> kept;
    const auto keep = [&](resumer<int> r) { kept.push_back(std::move(r)); };
    auto f = spin([&] {
      CHECK_THROWS_AS(suspend_with<int>(keep), first_error);
      return suspend_with<int>(keep);
    });
    snooze();
    f.raise(first_error());
    snooze();
    REQUIRE(kept.size() == 2);
    std::thread([late = std::move(kept[0])]() mutable { late(1); }).join();
    sleep_for(1ms);
    CHECK(f.state() == fiber_state::waiting);
    std::thread([right = std::move(kept[1])]() mutable { right(2); }).join();
    CHECK(f.await() == 2);
  });
}

TEST_CASE("a resumer called from afar after its thread has ended does nothing", "[resumer]") {
  std::optional<resumer<int>> late;
  run_here([&] {
    spin([&] { (void)suspend_with<int>([&](resumer<int> r) { late.emplace(std::move(r)); }); });
    snooze();
  });
  std::thread([&] { (*late)(1); }).join();
  late.reset();
}

TEST_CASE("a suspend_with() in the callable of another one is refused", "[resumer]") {
  run_here([] {
    const int got = suspend_with<int>([](resumer<int> outer) {
      CHECK_THROWS_AS(suspend_with([](resumer<void> inner) { inner(); }), std::logic_error);
      outer(1);
    });
    CHECK(got == 1);
  });
}

TEST_CASE("a thousand waits are resumed by threads that race with the thread's sleep",
          "[resumer][stress]") {
  run_here([] {
    const auto rounds = testing::scaled(100'000, 5'000);
    box<resumer<std::size_t>> waiting;
    std::atomic<bool> over{false};
    strangers others;
    for (int i = 0; i < 2; ++i) {
      others.start([&] {
        for (std::size_t given = 1; !over;) {
          if (auto next = waiting.take()) {
            (*next)(given++);
          } else {
            std::this_thread::yield();
          }
        }
      });
    }
    std::size_t resumed = 0;
    for (std::size_t i = 0; i < rounds; ++i) {
      if (suspend_with<std::size_t>([&](resumer<std::size_t> r) { waiting.put(std::move(r)); }) >
          0) {
        ++resumed;
      }
    }
    over = true;
    others.join();
    CHECK(resumed == rounds);
  });
}
