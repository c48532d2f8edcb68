// SPDX-License-Identifier: MIT
// Handles in the hands of other threads, with and without a runtime of their own.
#include <atomic>
#include <memory>
#include <motet/motet.hpp>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "strangers.hpp"
#include "support.hpp"

using namespace motet;
using testing::box;
using testing::distant;
using testing::first_error;
using testing::outcome_of;
using testing::strangers;
using testing::among_strangers::run_here;

TEST_CASE("fiber_ref can be copied and dropped on other threads", "[handle][stress]") {
  const auto rounds = testing::scaled(100'000, 2'000);
  run_here([&] {
    box<fiber_ref> handle_box;
    std::atomic<bool> stop_requested{false};
    strangers readers;
    for (int i = 0; i < 3; ++i) {
      readers.start([&] {
        std::vector<fiber_ref> handles;
        while (!stop_requested) {
          if (auto next = handle_box.take()) {
            for (int copies = 0; copies < 3; ++copies) handles.push_back(*next);
            if (handles.size() > 100) handles.clear();
          } else {
            std::this_thread::yield();
          }
        }
      });
    }
    std::size_t ran = 0;
    for (std::size_t i = 0; i < rounds; ++i) {
      auto f = spin([&] { ++ran; });
      handle_box.put(f);
      if (i % 2 == 0) f = {};
      snooze();
    }
    while (ran < rounds) snooze();
    stop_requested = true;
    readers.join();
    CHECK(ran == rounds);
  });
}

TEST_CASE("fiber_ref: the last drop on another thread frees all after the home thread ended",
          "[handle]") {
  for (int round = 0; round < 20; ++round) {
    auto destroyed = std::make_shared<std::atomic<int>>(0);
    struct result {
      std::shared_ptr<std::atomic<int>> count;
      result(std::shared_ptr<std::atomic<int>> counter) : count(std::move(counter)) {}
      result(result&& other) noexcept = default;
      result& operator=(result&&) = delete;
      ~result() {
        if (count != nullptr) ++*count;
      }
    };
    std::vector<fiber<result>> handles;
    run_here([&] {
      for (int i = 0; i < 10; ++i) {
        handles.push_back(spin([destroyed] { return result(destroyed); }));
      }
      for (auto& handle : handles) handle.await();
    });
    CHECK(*destroyed == 0);
    strangers peers;
    for (int i = 0; i < 2; ++i) {
      peers.start([half = std::vector<fiber<result>>(
                       std::make_move_iterator(handles.begin() + 5 * i),
                       std::make_move_iterator(handles.begin() + 5 * (i + 1)))]() mutable {
        for (auto& handle : half) handle.await();
        half.clear();
      });
    }
    peers.join();
    CHECK(*destroyed == 10);
  }
}

TEST_CASE("fiber::await() returns the stored result after the home thread has ended", "[handle]") {
  distant<int> value([] { return spin({.name = "alto"}, [] { return 4; }); });
  distant<int> victim([] { return spin([]() -> int { sleep(); }); });
  value.handle.await();
  value.dismiss();
  victim.dismiss();
  CHECK(value.handle.await() == 4);
  CHECK(value.handle.name() == "alto");
  CHECK(value.handle.home() != std::this_thread::get_id());
  CHECK(value.handle.children().empty());
  CHECK(value.handle.parent().state() == fiber_state::dead);
  CHECK_THROWS_AS(victim.handle.await(), fiber_cancelled);
  for (const fiber_ref& handle : {fiber_ref(value.handle), fiber_ref(victim.handle)}) {
    CHECK(handle.state() == fiber_state::dead);
    CHECK(!handle.schedule(1));
    CHECK(!handle.raise(first_error()));
    CHECK(handle.cancel() == cancel_result::finished);
  }
  CHECK(victim.handle.stop(1) == cancel_result::finished);
  run_here([&] {
    CHECK(value.handle.await() == 4);
    CHECK_THROWS_AS(victim.handle.await(), fiber_cancelled);
  });
}

TEST_CASE("fiber::children() throws on another thread", "[handle]") {
  distant<int> f([] { return spin([]() -> int { sleep(); }); });
  CHECK_THROWS_AS(f.handle.children(), std::logic_error);
}

TEST_CASE("fiber_ref starts no runtime on a thread that has none", "[handle]") {
  distant<int> f([] { return spin([] { return suspend<int>(); }); });
  std::atomic<bool> free{false};
  std::thread([&] {
    f.handle.raise(first_error());
    f.handle.schedule(1);
    try {
      f.handle.await();
    } catch (const first_error&) {
    }
    f.handle.cancel();
    run([&] { free = true; });  // refused if there were one
  }).join();
  CHECK(free);
}

TEST_CASE("fiber_ref: threads come and go while others keep their handles", "[handle][stress]") {
  const auto rounds = testing::scaled(500, 40);
  std::vector<fiber<std::size_t>> handles;
  std::mutex lock;
  for (std::size_t i = 0; i < rounds; ++i) {
    strangers readers;
    for (int k = 0; k < 2; ++k) {
      readers.start_runtime([&, i] {
        auto f = spin([i] {
          snooze();
          return i;
        });
        if (i % 2 == 0) suspend();
        const std::lock_guard guard(lock);
        handles.push_back(std::move(f));
      });
    }
    for (int k = 0; k < 20; ++k) {
      const std::lock_guard guard(lock);
      if (!handles.empty()) handles.back().raise(first_error());
    }
  }
  std::size_t values = 0;
  for (const auto& handle : handles) {
    if (outcome_of([&] { return handle.await(); }) != "first") ++values;
  }
  CHECK(handles.size() == 2 * rounds);
  CHECK(values > 0);
}
