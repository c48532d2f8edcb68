// SPDX-License-Identifier: MIT
// Channels between the fibers of one thread: order, capacity, closing, interruption.
#include <chrono>
#include <memory>
#include <motet/motet.hpp>
#include <motet/sync/channel.hpp>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "settle.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::settle;

namespace {

struct shared_form {
  template <typename T>
  using channel = motet::channel<T>;
};
struct local_form {
  template <typename T>
  using channel = motet::local::channel<T>;
};

/// Counts how many there are.
struct counted {
  inline static int alive = 0;
  explicit counted(int number) : value(number) { ++alive; }
  counted(counted&& source) noexcept : value(source.value) { ++alive; }
  counted& operator=(counted&&) = delete;
  ~counted() { --alive; }
  int value;
};

}  // namespace

#define FORMS shared_form, local_form
#define CHANNEL typename TestType::template channel

TEMPLATE_TEST_CASE("channel::push() waits for its pop if there is no capacity", "[channel]",
                   FORMS) {
  run([] {
    CHANNEL<int> numbers;
    std::string order;
    auto producer = spin([&] {
      for (int i = 0; i < 3; ++i) {
        numbers.push(i);
        order += static_cast<char>('a' + i);
      }
    });
    settle();
    CHECK(order.empty());
    CHECK(numbers.pop() == 0);
    settle();
    CHECK(order == "a");
    CHECK(numbers.try_pop() == 1);
    CHECK_FALSE(numbers.try_pop().has_value());  // the producer has not run yet
    CHECK(numbers.pop() == 2);
    producer.await();
    CHECK(order == "abc");
    CHECK_FALSE(numbers.try_push(9));
  });
}

TEMPLATE_TEST_CASE("channel never holds more than its capacity", "[channel]", FORMS) {
  run([] {
    CHANNEL<int> numbers(2);
    int pushed = 0;
    auto producer = spin([&] {
      for (int i = 0; i < 5; ++i) {
        numbers.push(i);
        ++pushed;
      }
      numbers.close();
    });
    settle();
    CHECK(pushed == 2);
    CHECK_FALSE(numbers.try_push(7));
    std::vector<int> values;
    for (int number : numbers) values.push_back(number);
    CHECK(values == std::vector<int>{0, 1, 2, 3, 4});
    producer.await();
  });
}

TEMPLATE_TEST_CASE("channel::push() never waits if the channel is unbounded", "[channel]", FORMS) {
  run([] {
    CHANNEL<std::unique_ptr<int>> numbers(unbounded);
    bool other_ran = false;
    auto neighbour = spin([&] { other_ran = true; });
    constexpr int many = 10'000;
    for (int i = 0; i < many; ++i) numbers.push(std::make_unique<int>(i));
    CHECK_FALSE(other_ran);  // a push that can proceed does not switch
    numbers.close();
    int next_number = 0;
    while (auto number = numbers.pop()) CHECK(**number == next_number++);
    CHECK(next_number == many);
    CHECK_FALSE(other_ran);
    neighbour.await();
  });
}

TEMPLATE_TEST_CASE("channel keeps the items of waiting pushes, wherever its chunks end",
                   "[channel]", FORMS) {
  run([] {
    for (const std::size_t capacity : {1U, 2U, 63U, 64U, 65U, 127U, 128U, 129U}) {
      CHANNEL<int> numbers(capacity);
      const int total = 500;
      auto producer = spin([&] {
        for (int i = 0; i < total; ++i) numbers.push(i);
        numbers.close();
      });
      int next_number = 0;
      for (std::size_t burst = 1; producer.state() != fiber_state::dead || numbers.size() > 0;
           burst = burst * 7 % 201) {
        settle();
        CHECK(numbers.size() <= capacity);
        for (std::size_t i = 0; i < burst && next_number < total; ++i) {
          if (numbers.pop() != next_number) FAIL();
          ++next_number;
        }
      }
      CHECK(next_number == total);
    }
  });
}

TEMPLATE_TEST_CASE("channel serves producers and consumers in order of arrival", "[channel]",
                   FORMS) {
  run([] {
    CHANNEL<char> letters;
    std::string order;
    group fibers;
    for (char name : {'x', 'y', 'z'}) {
      fibers.spin([&, name] {
        order += *letters.pop();
        order += name;
      });
    }
    snooze();
    for (char letter : {'1', '2', '3'}) letters.push(letter);
    fibers.await_all();
    CHECK(order == "1x2y3z");
    order.clear();
    for (char name : {'x', 'y', 'z'}) {
      fibers.spin([&, name] { letters.push(name); });
    }
    snooze();
    for (int i = 0; i < 3; ++i) order += *letters.pop();
    CHECK(order == "xyz");
    fibers.await_all();
  });
}

TEMPLATE_TEST_CASE("channel::close() ends the waiters, and the items inside can still be popped",
                   "[close]", FORMS) {
  run([] {
    CHANNEL<std::string> words(1);
    words.push("first");
    std::string item = "kept";
    bool refused = false;
    auto producer = spin([&] {
      try {
        words.push(std::move(item));
      } catch (const channel_closed&) {
        refused = true;
      }
    });
    settle();
    words.close();
    words.close();
    producer.await();
    CHECK(refused);
    CHECK(item == "kept");
    CHECK_THROWS_AS(words.push("late"), channel_closed);
    CHECK_THROWS_AS(words.try_push("late"), channel_closed);
    CHECK(words.pop() == "first");
    CHECK_FALSE(words.pop().has_value());
    CHECK_FALSE(words.try_pop().has_value());

    CHANNEL<std::string> empty;
    int ends = 0;
    group poppers;
    for (int i = 0; i < 3; ++i) {
      poppers.spin([&] {
        if (!empty.pop()) ++ends;
      });
    }
    settle();
    empty.close();
    poppers.await_all();
    CHECK(ends == 3);
  });
}

TEMPLATE_TEST_CASE("channel: an interrupted pop takes nothing, an interrupted push leaves nothing",
                   "[interruption]", FORMS) {
  run([] {
    CHANNEL<int> numbers;
    auto popper = spin([&] { numbers.pop(); });
    int value = 0;
    auto next = spin([&] { value = numbers.pop().value(); });
    settle();
    popper.cancel("not needed");
    numbers.push(1);
    next.await();
    CHECK(value == 1);
    CHECK_THROWS_AS(popper.await(), fiber_cancelled);

    auto pusher = spin([&] { numbers.push(2); });
    settle();
    pusher.cancel("not needed");
    CHECK_FALSE(numbers.try_pop().has_value());
    CHECK_THROWS_AS(pusher.await(), fiber_cancelled);
    CHECK_FALSE(move_on_after(1ms, [&] { numbers.push(3); }));
    CHECK_FALSE(numbers.try_pop().has_value());
  });
}

TEMPLATE_TEST_CASE("channel::pop() returns an item that it received before an interruption",
                   "[interruption]", FORMS) {
  run([] {
    CHANNEL<int> numbers;
    int value = 0;
    auto popper = spin([&] {
      value = numbers.pop().value();
      snooze();
    });
    settle();
    numbers.push(5);
    popper.cancel("too late");
    CHECK_THROWS_AS(popper.await(), fiber_cancelled);
    CHECK(value == 5);
  });
}

TEMPLATE_TEST_CASE("channel destroys the items that are left", "[channel]", FORMS) {
  run([] {
    {
      CHANNEL<counted> things(unbounded);
      for (int i = 0; i < 500; ++i) things.push(counted(i));
      for (int i = 0; i < 123; ++i) CHECK(things.pop()->value == i);
      CHECK(counted::alive == 377);
    }
    CHECK(counted::alive == 0);
  });
}

TEMPLATE_TEST_CASE("channel: the destructor throws in its waiters", "[destroyed]", FORMS) {
  run([] {
    auto numbers = std::make_unique<CHANNEL<int>>();
    auto popper = spin([&] { numbers->pop(); });
    settle();
    numbers.reset();
    CHECK_THROWS_AS(popper.await(), std::logic_error);
    numbers = std::make_unique<CHANNEL<int>>();
    auto pusher = spin([&] { numbers->push(1); });
    settle();
    numbers.reset();
    CHECK_THROWS_AS(pusher.await(), std::logic_error);
  });
}

TEMPLATE_TEST_CASE("channel does not grow with the number of items that have passed", "[channel]",
                   FORMS) {
  run([] {
    CHANNEL<int> numbers(unbounded);
    long sum = 0;
    for (int round = 0; round < 100'000; ++round) {
      numbers.push(round);
      numbers.push(round);
      sum += *numbers.pop() + *numbers.pop();
    }
    CHECK(sum == 2L * 99'999 * 100'000 / 2);
    CHECK_FALSE(numbers.try_pop().has_value());
  });
}

TEST_CASE("channel refuses a capacity that memory cannot hold", "[channel]") {
  CHECK_THROWS_AS(channel<int>(static_cast<std::size_t>(-1)), std::invalid_argument);
}

TEST_CASE("channel blocks threads without fibers", "[threads]") {
  channel<int> numbers(4);
  constexpr int many = 10'000;
  std::thread producer([&] {
    for (int i = 0; i < many; ++i) numbers.push(i);
    numbers.close();
  });
  int next_number = 0;
  while (auto number = numbers.pop()) {
    if (*number != next_number) break;
    ++next_number;
  }
  producer.join();
  CHECK(next_number == many);
}

TEST_CASE("channel wakes threads and fibers across thread boundaries", "[threads]") {
  run([] {
    channel<int> requests;
    channel<int> back;
    std::thread echo([&] {
      while (auto number = requests.pop()) back.push(*number + 1);
      back.close();
    });
    int ticks = 0;
    auto ticker = spin([&] {
      for (;;) {
        sleep_for(1ms);
        ++ticks;
      }
    });
    for (int i = 0; i < 1'000; ++i) {
      requests.push(i);
      REQUIRE(back.pop() == i + 1);
    }
    requests.close();
    CHECK_FALSE(back.pop().has_value());
    echo.join();
    ticker.cancel("done");
  });
}
