// SPDX-License-Identifier: MIT
// Waiting for one of several things: exactly one of them happens, nothing is lost.
#include <unistd.h>

#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <motet/motet.hpp>
#include <motet/sync/select.hpp>
#include <optional>
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

struct pipe_ends {
  std::array<int, 2> ends{};
  pipe_ends() { REQUIRE(::pipe(ends.data()) == 0); }
  pipe_ends(const pipe_ends&) = delete;
  pipe_ends& operator=(const pipe_ends&) = delete;
  ~pipe_ends() {
    for (int end : ends) {
      if (end >= 0) ::close(end);
    }
  }
  int reading() const { return ends[0]; }
  int writing() const { return ends[1]; }
};

}  // namespace

TEST_CASE("select() takes a ready branch without switching", "[select]") {
  run([] {
    channel<int> empty;
    local::channel<std::string> words(1);
    words.push("here");
    bool other_ran = false;
    auto neighbour = spin([&] { other_ran = true; });
    std::string text;
    const std::size_t index =
        select(on_pop(empty, [](std::optional<int>) { FAIL("nothing was there"); }),
               on_pop(words, [&](std::optional<std::string> word) { text = word.value(); }),
               on_timeout(1h, [] { FAIL("not waited so long"); }));
    CHECK(index == 1);
    CHECK(text == "here");
    CHECK_FALSE(other_ran);
    neighbour.await();
  });
}

TEST_CASE("select() waits for whichever branch is ready first", "[select]") {
  run([] {
    channel<int> a;
    local::channel<int> b;
    channel<std::unique_ptr<int>> c;
    int value = 0;
    auto item = std::make_unique<int>(7);
    const auto wait = [&] {
      value = 0;
      return select(on_pop(a, [&](std::optional<int> n) { value = n.value(); }),
                    on_pop(b, [&](std::optional<int> n) { value = -n.value(); }),
                    on_push(c, std::move(item), [&] { value = 100; }));
    };
    group producers;
    producers.spin([&] { a.push(1); });
    CHECK(wait() == 0);
    CHECK(value == 1);
    producers.spin([&] { b.push(2); });
    CHECK(wait() == 1);
    CHECK(value == -2);
    CHECK(item != nullptr);  // not pushed, so still here
    producers.spin([&] { value = *c.pop().value(); });
    CHECK(wait() == 2);
    CHECK(item == nullptr);
    producers.await_all();
    // It waits nowhere any more.
    CHECK_FALSE(a.try_push(1));
    CHECK_FALSE(b.try_push(1));
    CHECK_FALSE(c.try_pop().has_value());
  });
}

TEST_CASE("select() takes any of several ready branches, in_order always the first", "[select]") {
  run([] {
    std::array<channel<int>, 4> sources;
    std::array<std::optional<channel<int>>, 4> full;
    for (auto& slot : full) slot.emplace(unbounded);
    constexpr int rounds = 4'000;
    std::array<int, 4> count{};
    for (int i = 0; i < rounds; ++i) {
      for (auto& slot : full) {
        if (!slot->try_pop()) slot->push(i);
        slot->push(i);
      }
      ++count[select(on_pop(*full[0]), on_pop(*full[1]), on_pop(*full[2]), on_pop(*full[3]))];
    }
    for (int number : count) {
      CHECK(number > rounds / 5);
      CHECK(number < rounds / 3);
    }
    for (int i = 0; i < 100; ++i) {
      full[1]->push(i);
      CHECK(select(in_order, on_pop(sources[0]), on_pop(*full[1]), on_pop(*full[2])) == 1);
    }
  });
}

TEST_CASE("select() takes a timeout only when nothing else can proceed", "[select]") {
  run([] {
    channel<int> numbers(1);
    for (int i = 0; i < 100; ++i) {
      numbers.push(i);
      CHECK(select(on_timeout(0s), on_pop(numbers)) == 1);
      CHECK(select(on_timeout(0s), on_pop(numbers)) == 0);
    }
    const auto begin = clock::now();
    bool timed = false;
    CHECK(select(on_pop(numbers), on_timeout(20ms), on_timeout(5ms, [&] { timed = true; })) == 2);
    CHECK(timed);
    CHECK(clock::now() - begin >= 5ms);
    if (testing::on_sim()) CHECK(clock::now() - begin < 6ms);
  });
}

TEST_CASE("select() accepts the end of a fiber as a branch", "[select]") {
  run([] {
    channel<int> numbers;
    auto fiber = spin([] {
      sleep_for(2ms);
      return 3;
    });
    CHECK(select(on_pop(numbers), on_end(fiber)) == 1);
    CHECK(fiber.await() == 3);
    CHECK(select(on_pop(numbers), on_end(fiber)) == 1);
    auto failing = spin([] { throw std::runtime_error("failed"); });
    CHECK(select(on_end(failing), on_timeout(1h)) == 0);
    snooze();  // its failure has been claimed
    CHECK_THROWS_AS(failing.await(), std::runtime_error);
    CHECK_THROWS_AS(select(on_end(current())), std::logic_error);
    CHECK_THROWS_AS(select(on_end(fiber_ref())), std::logic_error);
  });
}

TEST_CASE("select() accepts the end of another thread's fiber as a branch", "[select]") {
  run([] {
    channel<fiber_ref> handles(1);
    channel<int> go(1);
    std::thread remote([&] {
      run([&] {
        auto waits = spin([&] { go.pop(); });
        handles.push(waits);
        waits.await();
      });
    });
    const fiber_ref distant = handles.pop().value();
    CHECK(select(on_end(distant), on_timeout(2ms)) == 1);
    go.push(1);
    channel<int> never;
    CHECK(select(on_pop(never), on_end(distant)) == 1);
    CHECK(select(on_pop(never), on_end(distant)) == 1);
    remote.join();
  });
}

TEST_CASE("select() leaves nothing behind if a remote end comes after another branch", "[select]") {
  run([] {
    channel<int> numbers(1);
    motet::thread worker([] { motet::sleep(); });
    const std::size_t rounds = testing::scaled(30'000, 2'000);
    for (std::size_t i = 0; i < rounds; ++i) {
      const auto fiber = worker.spin([&] { numbers.try_push(1); });
      select(on_end(fiber), on_pop(numbers));
      numbers.try_pop();
      fiber.await();
    }
  });
}

TEST_CASE("select() accepts a descriptor as a branch", "[select]") {
  run([] {
    pipe_ends ends;
    channel<int> numbers;
    CHECK(select(on_readable(ends.reading()), on_timeout(1ms)) == 1);
    CHECK(select(on_readable(ends.reading()), on_writable(ends.writing())) == 1);
    auto writer = spin([&] {
      sleep_for(1ms);
      REQUIRE(::write(ends.writing(), "x", 1) == 1);
    });
    CHECK(select(on_readable(ends.reading()), on_pop(numbers)) == 0);
    char byte = 0;
    REQUIRE(::read(ends.reading(), &byte, 1) == 1);
    auto pusher = spin([&] { numbers.push(1); });
    CHECK(select(on_readable(ends.reading()), on_pop(numbers)) == 1);
    // Its operation is over: the descriptor can be closed.
    io::close(ends.ends[0]);
    ends.ends[0] = -1;
    CHECK_THROWS_AS(select(on_readable(-1), on_pop(numbers)), std::system_error);
    writer.await();
    pusher.await();
  });
}

TEST_CASE("select() throws if its descriptor is closed", "[select]") {
  run([] {
    pipe_ends ends;
    auto closer = spin([&] {
      io::close(ends.ends[0]);
      ends.ends[0] = -1;
    });
    CHECK_THROWS_AS(select(on_readable(ends.reading()), on_timeout(1h)), std::system_error);
    closer.await();
  });
}

TEST_CASE("select() takes nothing when it is interrupted", "[select]") {
  run([] {
    channel<int> numbers;
    channel<int> second;
    int value = 5;
    auto waiter =
        spin([&] { select(on_pop(numbers), on_push(second, std::move(value)), on_timeout(1h)); });
    settle();
    waiter.cancel("no more");
    CHECK_FALSE(numbers.try_push(1));
    CHECK_FALSE(second.try_pop().has_value());
    CHECK_THROWS_AS(waiter.await(), fiber_cancelled);
    CHECK_FALSE(move_on_after(1ms, [&] { select(on_pop(numbers), on_pop(second)); }));
    CHECK_FALSE(numbers.try_push(1));
  });
}

TEST_CASE("select() on a closed channel is ready, and its push throws", "[select]") {
  run([] {
    channel<int> numbers;
    channel<int> second;
    group closers;
    closers.spin([&] { numbers.close(); });
    std::optional<int> value = 1;
    CHECK(select(on_pop(numbers, [&](std::optional<int> n) { value = n; }), on_pop(second)) == 0);
    CHECK_FALSE(value.has_value());
    closers.spin([&] { second.close(); });
    CHECK_THROWS_AS(select(on_push(second, 1), on_timeout(1h)), channel_closed);
    CHECK_THROWS_AS(select(on_push(second, 1), on_timeout(1h)), channel_closed);
  });
}

TEST_CASE("select() throws if its channel is destroyed", "[select]") {
  run([] {
    auto numbers = std::make_unique<channel<int>>();
    channel<int> second;
    auto waiter = spin([&] { select(on_pop(*numbers), on_pop(second)); });
    settle();
    numbers.reset();
    CHECK_THROWS_AS(waiter.await(), std::logic_error);
    // Destroyed after another branch was taken, and before the fiber has run.
    numbers = std::make_unique<channel<int>>();
    std::size_t index = 9;
    auto next = spin([&] { index = select(on_pop(*numbers), on_pop(second)); });
    settle();
    second.push(1);
    numbers.reset();
    next.await();
    CHECK(index == 1);
  });
}

TEST_CASE("select() works against another select()", "[select]") {
  run([] {
    channel<int> a;
    channel<int> b;
    int value = 0;
    group fibers;
    // Each could do both, but not with itself.
    for (int i = 0; i < 2; ++i) {
      fibers.spin([&] {
        select(on_push(a, 1, [&] { value += 1; }),
               on_pop(a, [&](std::optional<int>) { value += 10; }), on_pop(b));
      });
    }
    fibers.await_all();
    CHECK(value == 11);
  });
}

TEST_CASE("select() by several threads on the same channels loses nothing", "[select]") {
  const auto per_thread =
      static_cast<int>(testing::scaled(50'000, testing::under_tsan ? 1'000 : 10'000));
  channel<int> a;
  channel<int> b(3);
  long sum = 0;
  int count = 0;
  const auto produce = [&](channel<int>& opposite) {
    run([&] {
      for (int i = 1; i <= per_thread; ++i) {
        int first = i;
        int second = i;
        select(on_push(a, std::move(first)), on_push(opposite, std::move(second)));
      }
    });
  };
  std::thread first([&] { produce(b); });
  std::thread two([&] { produce(b); });
  run([&] {
    group consumers;
    for (int k = 0; k < 3; ++k) {
      consumers.spin([&] {
        while (count < 2 * per_thread) {
          const auto add = [&](std::optional<int> n) {
            if (!n) return;
            sum += *n;
            if (++count == 2 * per_thread) a.close(), b.close();
          };
          select(on_pop(a, add), on_pop(b, add));
        }
      });
    }
    consumers.await_all();
  });
  first.join();
  two.join();
  CHECK(count == 2 * per_thread);
  CHECK(sum == 2L * per_thread * (per_thread + 1) / 2);
}
