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

TEST_CASE("fiber::await() returns the same object each time", "[result]") {
  run([] {
    auto f = spin([] { return std::string("a value of more than a few characters"); });
    const std::string& once = f.await();
    const std::string& again = f.await();
    CHECK(&once == &again);
    CHECK(once == "a value of more than a few characters");
  });
}

TEST_CASE("fiber::await() on an rvalue moves the result out once; then it is a logic error",
          "[result]") {
  run([] {
    auto f = spin([] { return std::make_unique<int>(3); });
    const std::unique_ptr<int> value = std::move(f).await();
    CHECK(*value == 3);
    CHECK_THROWS_AS(f.await(), std::logic_error);
    CHECK_THROWS_AS(std::move(f).await(), std::logic_error);
    CHECK(f.state() == fiber_state::dead);
  });
}

TEST_CASE("fiber: results may be large, aligned, move-only or void", "[result]") {
  run([] {
    auto many = spin([] {
      std::array<int, 1000> numbers;
      numbers.fill(8);
      return numbers;
    });
    auto source = spin([] { return aligned(); });
    auto pointer = spin([p = std::make_unique<int>(4)]() mutable { return std::move(p); });
    auto void_fiber = spin([] {});
    auto yes = spin([] { return true; });
    CHECK(many.await()[999] == 8);
    CHECK(source.await().value == 5);
    CHECK(reinterpret_cast<std::uintptr_t>(&source.await()) % 64 == 0);
    CHECK(*pointer.await() == 4);
    void_fiber.await();
    CHECK(yes.await());
  });
}

TEST_CASE("fiber: a result lives as long as a handle, and is destroyed once", "[result]") {
  int alive = 0;
  run([&] {
    auto handle = spin([&] { return counted(alive); });
    handle.await();
    CHECK(alive == 1);
    const fiber_ref copy = handle;
    handle = {};
    CHECK(alive == 1);
    spin([&] { return counted(alive); });
    snooze();
    snooze();
    CHECK(alive == 1);
    auto victim = spin([&]() -> counted { sleep(); });
    snooze();
    victim.stop(counted(alive));
    CHECK_NOTHROW(victim.await());
    CHECK(alive == 2);
    auto source = spin([&] { return counted(alive); });
    {
      const counted value = std::move(source).await();
      CHECK(alive == 3);
    }
    CHECK(alive == 2);
  });
  CHECK(alive == 0);
}

TEST_CASE("fiber: dropping the handle neither ends the fiber nor waits for it", "[result]") {
  run([] {
    bool ran_on = false;
    {
      auto f = spin([&] {
        sleep_for(1ms);
        ran_on = true;
      });
    }
    CHECK(!ran_on);
    suspend();
    CHECK(ran_on);
  });
}

TEST_CASE("spin() accepts a callable that is move-only and larger than a page", "[result]") {
  run([] {
    std::array<char, 8000> big{};
    big[7999] = 'x';
    auto f = spin([big, p = std::make_unique<int>(1)] { return big[7999]; });
    CHECK(f.await() == 'x');
  });
}

TEST_CASE("spin() refuses an invalid stack size before it has an effect", "[spin]") {
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
