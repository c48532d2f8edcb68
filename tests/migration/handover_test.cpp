// SPDX-License-Identifier: MIT
// Two races that whoever hands a fiber to another thread must not lose: it may run there, and end,
// before the call that gave it away returns. So its handle is given first, and nothing of it is
// touched afterwards. scripts/mutants shows that these tests notice.
#include <atomic>
#include <cstdint>
#include <motet/motet.hpp>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "places.hpp"
#include "quiet.hpp"
#include "support.hpp"

using namespace motet;
using testing::idle_thread;
using testing::run_here;
using testing::scaled;
using testing::this_thread;

namespace {

thread_local int own_number = 0;

/// A compiler that saw through this could keep the address from one thread to the next.
[[gnu::noinline]] int& number_of_this_thread() {
  return own_number;
}

}  // namespace

TEST_CASE("teleport() many times: thread-bound state is always that of the current thread",
          "[handover][stress]") {
  run_here([] {
    idle_thread first;
    idle_thread second;
    for (idle_thread* target : {&first, &second}) {
      target->thread.call([&] { number_of_this_thread() = target->number; });
    }
    spin([&] {
      const std::uint64_t id = current().id();
      std::size_t wrong = 0;
      for (std::size_t hops = scaled(100'000, 5'000); hops > 0; --hops) {
        idle_thread& next = hops % 2 == 0 ? first : second;
        teleport(next.thread);
        const bool right = number_of_this_thread() == next.number && this_thread() == next.number &&
                           current().id() == id;
        if (!right) ++wrong;
      }
      CHECK(wrong == 0);
    }).await();
  });
}

TEST_CASE("teleport() moves fibers between two pools and back", "[handover][stress]") {
  constexpr std::size_t workers = 8;
  constexpr std::size_t fibers = 32;
  run_here([] {
    thread_pool source(workers);
    thread_pool right(workers);
    const std::size_t hops = scaled(20'000, testing::under_tsan ? 1'000 : 4'000) / fibers;
    std::atomic<std::size_t> arrived{0};
    group travellers;
    for (std::size_t i = 0; i < fibers; ++i) {
      travellers.spin([&] {
        for (std::size_t hop = 0; hop < hops; ++hop) {
          teleport(hop % 2 == 0 ? source : right);
          ++arrived;
        }
      });
    }
    travellers.await_all();
    CHECK(arrived == fibers * hops);
  });
}

TEST_CASE("thread::spin() provides the handle before a short fiber ends", "[handover][stress]") {
  constexpr std::size_t spinners = 4;
  run_here([] {
    idle_thread worker;
    const std::size_t per_spinner =
        scaled(1'000'000, testing::under_tsan ? 2'000 : 20'000) / spinners;
    std::atomic<std::size_t> ends{0};
    const auto spin_many = [&] {
      for (std::size_t i = 0; i < per_spinner; ++i)
        ends += worker.thread.spin([&] { return 1U; }).await();
    };
    std::vector<motet::thread> fibers;
    std::vector<std::thread> plain;
    for (std::size_t i = 0; i < spinners / 2; ++i) {
      fibers.emplace_back(testing::quiet(), spin_many);
      plain.emplace_back(spin_many);
    }
    for (std::thread& thread : plain) thread.join();
    for (const motet::thread& thread : fibers) thread.await();
    CHECK(ends == spinners * per_spinner);
  });
}
