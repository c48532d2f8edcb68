// SPDX-License-Identifier: MIT
// Results and bodies: of any type and size, kept as long as a handle, destroyed once.
#include <array>
#include <memory>
#include <motet/motet.hpp>
#include <string>
#include <utility>

#include "catch.hpp"
#include "fixtures.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::counted;

namespace {

struct alignas(64) aligned {
  int value = 5;
};

}  // namespace

TEST_CASE("a result is read as often as one likes, at the same place", "[result]") {
  run([] {
    auto f = spin([] { return std::string("a value of more than a few characters"); });
    const std::string& once = f.await();
    const std::string& again = f.await();
    CHECK(&once == &again);
    CHECK(once == "a value of more than a few characters");
  });
}

TEST_CASE("a result can be taken once; afterwards awaiting it is a logic error", "[result]") {
  run([] {
    auto f = spin([] { return std::make_unique<int>(3); });
    const std::unique_ptr<int> taken = std::move(f).await();
    CHECK(*taken == 3);
    CHECK_THROWS_AS(f.await(), std::logic_error);
    CHECK_THROWS_AS(std::move(f).await(), std::logic_error);
    CHECK(f.state() == fiber_state::dead);
  });
}

TEST_CASE("results may be large, aligned, move-only or nothing", "[result]") {
  run([] {
    auto many = spin([] {
      std::array<int, 1000> numbers;
      numbers.fill(8);
      return numbers;
    });
    auto one = spin([] { return aligned(); });
    auto pointer = spin([p = std::make_unique<int>(4)]() mutable { return std::move(p); });
    auto nothing = spin([] {});
    auto yes = spin([] { return true; });
    CHECK(many.await()[999] == 8);
    CHECK(one.await().value == 5);
    CHECK(reinterpret_cast<std::uintptr_t>(&one.await()) % 64 == 0);
    CHECK(*pointer.await() == 4);
    nothing.await();
    CHECK(yes.await());
  });
}

TEST_CASE("a result lives as long as a handle, and is destroyed once", "[result]") {
  int alive = 0;
  run([&] {
    auto kept = spin([&] { return counted(alive); });
    kept.await();
    CHECK(alive == 1);
    const fiber_ref other = kept;
    kept = {};
    CHECK(alive == 1);
    spin([&] { return counted(alive); });
    snooze();
    snooze();
    CHECK(alive == 1);
    auto stopped = spin([&]() -> counted { sleep(); });
    snooze();
    stopped.stop(counted(alive));
    CHECK_NOTHROW(stopped.await());
    CHECK(alive == 2);
    auto taken = spin([&] { return counted(alive); });
    {
      const counted mine = std::move(taken).await();
      CHECK(alive == 3);
    }
    CHECK(alive == 2);
  });
  CHECK(alive == 0);
}

TEST_CASE("dropping the handle neither ends a fiber nor waits for it", "[result]") {
  run([] {
    bool over = false;
    {
      auto f = spin([&] {
        sleep_for(1ms);
        over = true;
      });
    }
    CHECK(!over);
    suspend();
    CHECK(over);
  });
}

TEST_CASE("a body may be move-only and larger than a page", "[result]") {
  run([] {
    std::array<char, 8000> big{};
    big[7999] = 'x';
    auto f = spin([big, p = std::make_unique<int>(1)] { return big[7999]; });
    CHECK(f.await() == 'x');
  });
}

TEST_CASE("a stack size that cannot be is refused before anything has happened", "[spin]") {
  run([] {
    CHECK_THROWS_AS(spin({.stack_size = 100}, [] {}), std::invalid_argument);
    CHECK(current().children().empty());
    auto f = spin({.name = "big", .stack_size = 1 << 20}, [] {
      volatile char room[900'000];
      room[0] = 1;
      return static_cast<int>(room[0]);
    });
    CHECK(f.await() == 1);
  });
}
