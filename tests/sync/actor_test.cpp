// SPDX-License-Identifier: MIT
// Actors: what they receive, and what becomes of the rest.
#include <chrono>
#include <future>
#include <memory>
#include <motet/motet.hpp>
#include <motet/sync/actor.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "settle.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::settle;

TEST_CASE("actor: receive() takes messages in order, receive_if() the first that matches",
          "[actor]") {
  run([] {
    std::vector<int> values;
    actor<int> numbers([&](actor<int>::inbox& messages) {
      values.push_back(messages.receive_if([](int n) { return n % 2 == 0; }));
      values.push_back(messages.receive_if([](int n) { return n > 4; }));
      for (int i = 0; i < 4; ++i) values.push_back(messages.receive());
    });
    for (int n : {1, 2, 3, 4, 5, 6}) numbers.send(n);
    numbers.await();
    CHECK(values == std::vector<int>{2, 5, 1, 3, 4, 6});
  });
}

TEST_CASE("actor moves its messages, and loses none that receive_if() skips", "[actor]") {
  run([] {
    std::string order;
    actor<std::unique_ptr<int>> numbers([&](auto& messages) {
      const bool found = move_on_after(
          1ms, [&] { messages.receive_if([](const std::unique_ptr<int>& n) { return *n == 9; }); });
      CHECK_FALSE(found);
      order += static_cast<char>('0' + *messages.receive());
      order += static_cast<char>('0' + *messages.receive());
    });
    numbers.send(std::make_unique<int>(1));
    numbers.send(std::make_unique<int>(2));
    numbers.await();
    CHECK(order == "12");
  });
}

TEST_CASE("actor::send() waits while a bounded actor is full", "[actor]") {
  run([] {
    event go;
    actor<int> slow({.name = "slow", .capacity = 2}, [&](actor<int>::inbox& messages) {
      go.wait();
      for (int i = 0; i < 4; ++i) messages.receive();
    });
    int sends = 0;
    auto sender = spin([&] {
      for (int i = 0; i < 4; ++i) {
        slow.send(i);
        ++sends;
      }
    });
    settle();
    CHECK(sends == 2);
    CHECK_FALSE(slow.try_send(9));
    go.set();
    sender.await();
    slow.await();
    CHECK(sends == 4);
  });
}

TEST_CASE("actor::send() throws after the actor has ended", "[actor]") {
  run([] {
    actor<int> brief({.capacity = 0}, [](auto& messages) { messages.receive(); });
    bool notified = false;
    auto sender = spin([&] {
      try {
        brief.send(1);
        brief.send(2);
      } catch (const channel_closed&) {
        notified = true;
      }
    });
    brief.await();
    sender.await();
    CHECK(notified);
    CHECK_THROWS_AS(brief.try_send(3), channel_closed);

    actor<int> failing([](auto& messages) {
      messages.receive();
      throw std::runtime_error("failed");
    });
    failing.send(1);
    CHECK_THROWS_AS(failing.await(), std::runtime_error);
    CHECK_THROWS_AS(failing.send(1), channel_closed);

    actor<int> unstarted([](auto&) { FAIL("it was cancelled before"); });
    unstarted.cancel("at once");
    CHECK_THROWS_AS(unstarted.await(), fiber_cancelled);
    CHECK_THROWS_AS(unstarted.send(1), channel_closed);
  });
}

TEST_CASE("actor destroys the messages that it never received", "[actor]") {
  run([] {
    struct question {
      promise<int> answer;
    };
    actor<question> brief([](auto& questions) { questions.receive().answer.set_value(1); });
    question first;
    question second;
    const auto heard = first.answer.get_future();
    const auto unheard = second.answer.get_future();
    brief.send(std::move(first));
    brief.send(std::move(second));
    brief.await();
    CHECK(heard.get() == 1);
    CHECK_THROWS_AS(unheard.get(), std::future_error);
  });
}
