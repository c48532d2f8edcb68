// SPDX-License-Identifier: MIT
// What must not allocate, counted: every call of malloc(3) and its like, which operator new makes
// too.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <motet/motet.hpp>
#include <mutex>
#include <stdexcept>

#include "catch.hpp"
#include "support.hpp"

namespace {

std::atomic<std::size_t> allocations{0};

void count() {
  allocations.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

// Source: the manual of the GNU C Library, "Replacing malloc"; these are what it calls its own.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

void* malloc(std::size_t size) {
  count();
  return __libc_malloc(size);
}
void* calloc(std::size_t number, std::size_t size) {
  count();
  return __libc_calloc(number, size);
}
void* realloc(void* memory, std::size_t size) {
  count();
  return __libc_realloc(memory, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  count();
  return __libc_memalign(alignment, size);
}
}

using namespace motet;
using namespace std::chrono_literals;

namespace {

/// Without stack_reuse as many fibers have a new stack as there are stacks that fault.
const int warm_up = testing::disabled("stack_reuse") ? 2'000 : 100;

/// Returns: how often `round` allocated once it was warm.
template <typename Round>
std::size_t allocations_in(Round round) {
  const std::size_t rounds = testing::scaled(100'000, testing::under_tsan ? 2'000 : 20'000);
  for (int i = 0; i < warm_up; ++i) round();
  const std::size_t start = allocations.load();
  for (std::size_t i = 0; i < rounds; ++i) round();
  return allocations.load() - start;
}

}  // namespace

TEST_CASE("snooze(), spin() and await() allocate nothing", "[allocation]") {
  run([] {
    spin([] {
      for (;;) snooze();
    });
    CHECK(allocations_in([] { snooze(); }) == 0);
    CHECK(allocations_in([] { spin([] { snooze(); }).await(); }) == 0);
  });
}

TEST_CASE("schedule() and suspend() allocate nothing", "[allocation]") {
  run([] {
    const fiber_ref main_fiber = current();
    auto echo = spin([&] {
      for (;;) main_fiber.schedule(suspend<int>());
    });
    CHECK(allocations_in([&] {
            echo.schedule(1);
            suspend<int>();
          }) == 0);
    CHECK(allocations_in([&] { suspend_with<int>([](resumer<int> resume) { resume(1); }); }) == 0);
  });
}

TEST_CASE("sleep_for() allocates nothing, even with deadlines set", "[allocation]") {
  run([] {
    CHECK(allocations_in([] { sleep_for(1us); }) == 0);
    CHECK(allocations_in([] { move_on_after(1h, [] { sleep_for(1us); }); }) == 0);
  });
}

TEST_CASE("io::read() and io::write() allocate nothing", "[allocation]") {
  run([] {
    const auto sockets = testing::make_socket_pair();
    group peers;
    peers.spin([&] {
      std::byte byte{};
      for (;;) {
        io::recv(sockets.second(), {&byte, 1});
        io::send(sockets.second(), {&byte, 1});
      }
    });
    std::byte byte{};
    CHECK(allocations_in([&] {
            io::send(sockets.first(), {&byte, 1});
            io::recv(sockets.first(), {&byte, 1});
          }) == 0);
    peers.cancel();
    peers.await_all();
  });
}

TEST_CASE("channel and other primitives allocate nothing once they have grown", "[allocation]") {
  run([] {
    channel<int> requests;
    local::channel<int> back(1);
    channel<int> stream(unbounded);
    mutex lock;
    semaphore permits(0);
    notification news;
    group peers;
    peers.spin([&] {
      for (;;) {
        const int value = requests.pop().value();
        {
          const std::lock_guard guard(lock);
          snooze();  // so that the other one waits for it
        }
        back.push(value);
        permits.acquire();
        news.notify_all();
      }
    });
    CHECK(allocations_in([&] {
            requests.push(1);
            snooze();
            lock.lock();
            lock.unlock();
            stream.push(2);
            select(on_pop(back), on_timeout(1h));
            permits.release();
            news.wait();
            stream.pop();
          }) == 0);
  });
}

TEST_CASE("channel allocates as items come, and keeps the memory", "[allocation]") {
  run([] {
    using channel_of_texts = local::channel<std::array<char, 64>>;
    const auto fill_and_empty = [](channel_of_texts& target, int items) {
      for (int i = 0; i < items; ++i) target.push({});
      for (int i = 0; i < items; ++i) target.pop();
    };
    CHECK(allocations_in([] { channel_of_texts(100'000); }) == 0);
    const std::size_t unused = allocations.load();
    channel_of_texts few(100'000);
    fill_and_empty(few, 10);
    CHECK(allocations.load() <= unused + 2);
    channel_of_texts warm(1'000);
    fill_and_empty(warm, 1'000);
    const std::size_t full = allocations.load();
    for (int i = 0; i < 10; ++i) fill_and_empty(warm, 1'000 - i);
    CHECK(allocations.load() == full);

    channel_of_texts reserved(1'000);
    reserved.reserve(2'000);
    const std::size_t start = allocations.load();
    for (int i = 0; i < 10; ++i) fill_and_empty(reserved, 990);
    fill_and_empty(reserved, 1'000);
    CHECK(allocations.load() == start);
  });
}

TEST_CASE("operator new: allocations are counted", "[allocation]") {
  CHECK(allocations_in([] { ::operator delete(::operator new(1)); }) > 0);
}

TEST_CASE("fiber::raise() of an existing exception allocates as much as rethrowing it",
          "[allocation]") {
  run([] {
    const auto error = std::make_exception_ptr(std::runtime_error("raised"));
    const std::size_t by_the_language = allocations_in([&] {
      try {
        std::rethrow_exception(error);
      } catch (const std::runtime_error&) {
      }
    });
    auto target = spin([] {
      for (;;) {
        try {
          sleep();
        } catch (const std::runtime_error&) {
        }
      }
    });
    snooze();
    CHECK(allocations_in([&] {
            target.raise(error);
            snooze();
          }) == by_the_language);
  });
}

TEST_CASE("cancel_reason allocates nothing, and its cause one block for all", "[allocation]") {
  run([] {
    const std::size_t throw_count = allocations_in([] {
      try {
        throw 1;
      } catch (int) {
      }
    });
    const auto end_one = [] {
      auto victim = spin([] {
        try {
          sleep();
        } catch (const cancelled&) {
        }
      });
      snooze();
      victim.cancel("it is enough");
      victim.await();
    };
    CHECK(allocations_in(end_one) == throw_count);
    cancel_scope scope;
    scope.cancel();
    scope.call([&] {
      shield([&] {
        const std::size_t start = allocations.load();
        end_one();
        const std::size_t first = allocations.load() - start;
        CHECK(first == 2);
        CHECK(allocations_in(end_one) == throw_count);
      });
    });
  });
}
