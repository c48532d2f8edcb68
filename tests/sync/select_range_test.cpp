// SPDX-License-Identifier: MIT
// select() over a set that the program makes as it runs, with branches that are disabled, and over
// events, latches, futures, permits and subscriptions.
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <deque>
#include <memory>
#include <motet/motet.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "settle.hpp"
#include "support.hpp"
#include "sync/forms.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::oops;
using testing::settle;
using testing::until_waiting;

TEMPLATE_TEST_CASE("select() over a range takes one branch at a time, until none is left",
                   "[select]", FORMS) {
  run([] {
    constexpr int count = 40;
    std::deque<typename TestType::template channel<int>> channels;
    std::vector<int> sums(count);
    int ends = 0;
    const auto branch = [&](int place) {
      return on_pop(channels[static_cast<std::size_t>(place)],
                    [&, place](std::optional<int> value) {
                      if (value) {
                        sums[static_cast<std::size_t>(place)] += *value;
                      } else {
                        ++ends;
                      }
                    });
    };
    std::vector<decltype(branch(0))> cases;
    group producers;
    for (int i = 0; i < count; ++i) {
      channels.emplace_back(static_cast<std::size_t>(i % 3));
      producers.spin([&, i] {
        for (int factor = 1; factor <= 10; ++factor)
          channels[static_cast<std::size_t>(i)].push(i * factor);
        channels[static_cast<std::size_t>(i)].close();
      });
    }
    for (int i = 0; i < count; ++i) cases.push_back(branch(i));
    while (ends < count) {
      const int ends_before = ends;
      const std::size_t index = motet::select(cases);
      if (ends > ends_before) cases[index].only_if(false);
    }
    producers.await_all();
    for (int i = 0; i < count; ++i) CHECK(sums[static_cast<std::size_t>(i)] == 55 * i);
    CHECK_THROWS_AS(motet::select(cases), std::invalid_argument);
    cases.clear();
    CHECK_THROWS_AS(motet::select(in_order, cases), std::invalid_argument);
  });
}

TEMPLATE_TEST_CASE("select() over a range: a timeout branch counts from the call", "[select]",
                   FORMS) {
  run([] {
    std::vector<decltype(on_timeout(1ms))> cases;
    cases.push_back(on_timeout(30ms));
    cases.push_back(on_timeout(5ms));
    for (int round = 0; round < 2; ++round) {
      const auto begin = clock::now();
      CHECK(motet::select(cases) == 1);
      CHECK(clock::now() - begin >= 4ms);
    }
  });
}

TEST_CASE("select() over a range of descriptors can be repeated", "[select]") {
  if (testing::on_sim()) return;
  run([] {
    std::vector<motet::pipe> pipes;
    for (int i = 0; i < 2; ++i) pipes.push_back(motet::pipe::open());
    const auto branch = [](motet::pipe& source) {
      return on_readable(source.native_handle(SHUT_RD));
    };
    std::vector<decltype(branch(pipes[0]))> cases;
    for (auto& source : pipes) cases.push_back(branch(source));
    for (int round = 0; round < 6; ++round) {
      const auto place = static_cast<std::size_t>(round / 3);
      auto waits = spin([&] { return motet::select(cases); });
      until_waiting(waits);
      pipes[place].write_all("x");
      CHECK(waits.await() == place);
      std::array<std::byte, 1> byte;
      pipes[place].read(byte);
    }
  });
}

TEMPLATE_TEST_CASE("select() ignores a disabled branch", "[select]", FORMS) {
  run([] {
    typename TestType::template channel<int> full(1);
    typename TestType::template channel<int> empty(1);
    full.push(1);
    bool popped = false;
    CHECK(motet::select(on_pop(full, [&] { popped = true; }).only_if(false), on_pop(empty),
                        on_timeout(1ms)) == 2);
    CHECK_FALSE(popped);
    CHECK(motet::select(in_order, on_pop(empty), on_pop(full).only_if(true)) == 1);
    CHECK_THROWS_AS(motet::select(on_pop(full).only_if(false)), std::invalid_argument);
  });
}

TEMPLATE_TEST_CASE("select() waits for an event, a latch, permits or a subscription's item",
                   "[select]", FORMS) {
  run([] {
    typename TestType::event happened;
    typename TestType::latch steps(1);
    typename TestType::semaphore permits(1);
    typename TestType::template broadcast<int> numbers(2);
    typename TestType::template watch<int> level(7);
    auto items = numbers.subscribe();
    auto levels = level.subscribe();
    std::string text;
    const auto wait_for_any = [&] {
      return motet::select(
          in_order, on_set(happened, [&] { text += 'e'; }), on_open(steps, [&] { text += 'l'; }),
          on_acquire(permits, 2, [&] { text += 's'; }),
          on_next(items,
                  [&](std::optional<int> next) { text += std::to_string(next.value_or(0)); }),
          on_next(levels,
                  [&](std::optional<int> level_seen) { text += std::to_string(*level_seen); }));
    };
    CHECK(wait_for_any() == 4);
    CHECK(text == "7");
    const auto waits_for = [&](auto change) {
      auto waits = spin([&] { return wait_for_any(); });
      until_waiting(waits);
      change();
      return waits.await();
    };
    CHECK(waits_for([&] { level.set(8); }) == 4);
    CHECK(waits_for([&] { numbers.push(5); }) == 3);
    CHECK(waits_for([&] { permits.release(); }) == 2);
    CHECK(waits_for([&] { steps.count_down(); }) == 1);
    CHECK(wait_for_any() == 1);
    happened.set();
    CHECK(wait_for_any() == 0);
    CHECK(text == "785slle");
    happened.reset();
    typename TestType::latch closed(1);
    auto victim = spin([&] {
      motet::select(on_set(happened), on_acquire(permits, 1), on_open(closed),
                    on_next(levels, [&] { text += '!'; }));
    });
    until_waiting(victim);
    victim.raise(oops());
    permits.release();
    CHECK_THROWS_AS(victim.await(), oops);
    CHECK(permits.try_acquire());
    numbers.push(1);
    numbers.push(2);
    numbers.push(3);
    CHECK_THROWS_AS(motet::select(on_next(items)), items_missed);
    CHECK(motet::select(on_next(items, [&](std::optional<int> next) { CHECK(next == 2); })) == 0);
  });
}

TEMPLATE_TEST_CASE("select() on permits holds up later acquirers only while it waits",
                   "[select][semaphore]", FORMS) {
  run([] {
    typename TestType::semaphore permits(1);
    bool acquired = false;
    event enough;
    auto large = spin([&] { motet::select(on_acquire(permits, 5), on_set(enough)); });
    until_waiting(large);
    auto small = spin([&] {
      permits.acquire();
      acquired = true;
    });
    until_waiting(small);
    CHECK_FALSE(acquired);
    enough.set();
    large.await();
    small.await();
    CHECK(acquired);
    auto refused = spin([&] { motet::select(on_acquire(permits, 1), on_timeout(1h)); });
    until_waiting(refused);
    permits.close();
    CHECK_THROWS_AS(refused.await(), semaphore_closed);
    CHECK_THROWS_AS(motet::select(on_acquire(permits, 1)), semaphore_closed);
    CHECK_THROWS_AS(on_acquire(permits, 0), std::invalid_argument);
  });
}

TEST_CASE("select() over futures takes the first that is ready", "[select][future]") {
  run([] {
    std::vector<promise<int>> promises(3);
    const auto branch = [](const promise<int>& source) { return on_ready(source.get_future()); };
    std::vector<decltype(branch(promises[0]))> cases;
    for (const auto& source : promises) cases.push_back(branch(source));
    auto first = spin([&] { return motet::select(cases); });
    until_waiting(first);
    std::thread([&] { promises[1].set_value(1); }).join();
    CHECK(first.await() == 1);
    promises.clear();
    CHECK(motet::select(in_order, cases) == 0);  // broken, which is an answer, too
    CHECK_THROWS_AS(on_ready(future<int>()), std::logic_error);
  });
}

TEMPLATE_TEST_CASE("permit_guard returns its permits", "[semaphore]", FORMS) {
  run([] {
    typename TestType::semaphore permits(3);
    {
      const permit_guard two(permits, 2);
      permit_guard guard(permits);
      CHECK_FALSE(permits.try_acquire());
      const auto target = std::move(guard);
      CHECK_FALSE(permits.try_acquire());
    }
    CHECK(permits.stats().free == 3);
    permits.acquire(3);
    auto waits = spin([&] { permits.acquire(); });
    until_waiting(waits);
    CHECK_FALSE(permits.stats().closed);
    permits.close();
    permits.close();
    CHECK(permits.stats().closed);
    CHECK_THROWS_AS(waits.await(), semaphore_closed);
    CHECK_THROWS_AS(permit_guard(permits), semaphore_closed);
    CHECK_THROWS_AS(permits.try_acquire(), semaphore_closed);
    permits.release(3);
    CHECK(permits.stats().free == 3);
  });
}
