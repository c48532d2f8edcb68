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
    for (int each : ends) {
      if (each >= 0) ::close(each);
    }
  }
  int reading() const { return ends[0]; }
  int writing() const { return ends[1]; }
};

}  // namespace

TEST_CASE("select takes what is ready, without switching", "[select]") {
  run([] {
    channel<int> empty;
    local::channel<std::string> words(1);
    words.push("here");
    bool other_ran = false;
    auto other = spin([&] { other_ran = true; });
    std::string got;
    const std::size_t taken =
        select(on_pop(empty, [](std::optional<int>) { FAIL("nothing was there"); }),
               on_pop(words, [&](std::optional<std::string> word) { got = word.value(); }),
               on_timeout(1h, [] { FAIL("not waited so long"); }));
    CHECK(taken == 1);
    CHECK(got == "here");
    CHECK_FALSE(other_ran);
    other.await();
  });
}

TEST_CASE("select waits for whichever comes first", "[select]") {
  run([] {
    channel<int> a;
    local::channel<int> b;
    channel<std::unique_ptr<int>> c;
    int got = 0;
    auto item = std::make_unique<int>(7);
    const auto wait = [&] {
      got = 0;
      return select(on_pop(a, [&](std::optional<int> n) { got = n.value(); }),
                    on_pop(b, [&](std::optional<int> n) { got = -n.value(); }),
                    on_push(c, std::move(item), [&] { got = 100; }));
    };
    group others;
    others.spin([&] { a.push(1); });
    CHECK(wait() == 0);
    CHECK(got == 1);
    others.spin([&] { b.push(2); });
    CHECK(wait() == 1);
    CHECK(got == -2);
    CHECK(item != nullptr);  // not pushed, so still here
    others.spin([&] { got = *c.pop().value(); });
    CHECK(wait() == 2);
    CHECK(item == nullptr);
    others.await_all();
    // It waits nowhere any more.
    CHECK_FALSE(a.try_push(1));
    CHECK_FALSE(b.try_push(1));
    CHECK_FALSE(c.try_pop().has_value());
  });
}

TEST_CASE("of several ready branches each is taken sometimes, in_order always the first",
          "[select]") {
  run([] {
    std::array<channel<int>, 4> from;
    std::array<std::optional<channel<int>>, 4> full;
    for (auto& each : full) each.emplace(unbounded);
    constexpr int rounds = 4'000;
    std::array<int, 4> count{};
    for (int i = 0; i < rounds; ++i) {
      for (auto& each : full) {
        if (!each->try_pop()) each->push(i);
        each->push(i);
      }
      ++count[select(on_pop(*full[0]), on_pop(*full[1]), on_pop(*full[2]), on_pop(*full[3]))];
    }
    for (int each : count) {
      CHECK(each > rounds / 5);
      CHECK(each < rounds / 3);
    }
    for (int i = 0; i < 100; ++i) {
      full[1]->push(i);
      CHECK(select(in_order, on_pop(from[0]), on_pop(*full[1]), on_pop(*full[2])) == 1);
    }
  });
}

TEST_CASE("a time is taken only when nothing else can proceed", "[select]") {
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

TEST_CASE("a fiber's end is a branch", "[select]") {
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

TEST_CASE("a fiber of another thread, too", "[select]") {
  run([] {
    channel<fiber_ref> handles(1);
    channel<int> go(1);
    std::thread other([&] {
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
    other.join();
  });
}

TEST_CASE("a distant end that comes just after another branch leaves nothing behind", "[select]") {
  run([] {
    channel<int> numbers(1);
    motet::thread there([] { motet::sleep(); });
    const std::size_t rounds = testing::scaled(30'000, 2'000);
    for (std::size_t i = 0; i < rounds; ++i) {
      const auto fiber = there.spin([&] { numbers.try_push(1); });
      select(on_end(fiber), on_pop(numbers));
      numbers.try_pop();
      fiber.await();
    }
  });
}

TEST_CASE("a descriptor is a branch", "[select]") {
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

TEST_CASE("a descriptor that is closed during a select is an error", "[select]") {
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

TEST_CASE("an interrupted select has taken nothing", "[select]") {
  run([] {
    channel<int> numbers;
    channel<int> others;
    int value = 5;
    auto waiting =
        spin([&] { select(on_pop(numbers), on_push(others, std::move(value)), on_timeout(1h)); });
    settle();
    waiting.cancel("no more");
    CHECK_FALSE(numbers.try_push(1));
    CHECK_FALSE(others.try_pop().has_value());
    CHECK_THROWS_AS(waiting.await(), fiber_cancelled);
    CHECK_FALSE(move_on_after(1ms, [&] { select(on_pop(numbers), on_pop(others)); }));
    CHECK_FALSE(numbers.try_push(1));
  });
}

TEST_CASE("a closed channel is ready, and a push to one throws", "[select]") {
  run([] {
    channel<int> numbers;
    channel<int> others;
    group closers;
    closers.spin([&] { numbers.close(); });
    std::optional<int> got = 1;
    CHECK(select(on_pop(numbers, [&](std::optional<int> n) { got = n; }), on_pop(others)) == 0);
    CHECK_FALSE(got.has_value());
    closers.spin([&] { others.close(); });
    CHECK_THROWS_AS(select(on_push(others, 1), on_timeout(1h)), channel_closed);
    CHECK_THROWS_AS(select(on_push(others, 1), on_timeout(1h)), channel_closed);
  });
}

TEST_CASE("a channel that is destroyed during a select throws there", "[select]") {
  run([] {
    auto numbers = std::make_unique<channel<int>>();
    channel<int> others;
    auto waiting = spin([&] { select(on_pop(*numbers), on_pop(others)); });
    settle();
    numbers.reset();
    CHECK_THROWS_AS(waiting.await(), std::logic_error);
    // Destroyed after another branch was taken, and before the fiber has run.
    numbers = std::make_unique<channel<int>>();
    std::size_t taken = 9;
    auto next = spin([&] { taken = select(on_pop(*numbers), on_pop(others)); });
    settle();
    others.push(1);
    numbers.reset();
    next.await();
    CHECK(taken == 1);
  });
}

TEST_CASE("two selects meet each other", "[select]") {
  run([] {
    channel<int> a;
    channel<int> b;
    int got = 0;
    group both;
    // Each could do both, but not with itself.
    for (int i = 0; i < 2; ++i) {
      both.spin([&] {
        select(on_push(a, 1, [&] { got += 1; }), on_pop(a, [&](std::optional<int>) { got += 10; }),
               on_pop(b));
      });
    }
    both.await_all();
    CHECK(got == 11);
  });
}

TEST_CASE("threads that select on the same channels lose nothing", "[select]") {
  const auto each = static_cast<int>(testing::scaled(50'000, testing::under_tsan ? 1'000 : 10'000));
  channel<int> a;
  channel<int> b(3);
  long sum = 0;
  int count = 0;
  const auto produce = [&](channel<int>& other) {
    run([&] {
      for (int i = 1; i <= each; ++i) {
        int first = i;
        int second = i;
        select(on_push(a, std::move(first)), on_push(other, std::move(second)));
      }
    });
  };
  std::thread one([&] { produce(b); });
  std::thread two([&] { produce(b); });
  run([&] {
    group consumers;
    for (int k = 0; k < 3; ++k) {
      consumers.spin([&] {
        while (count < 2 * each) {
          const auto add = [&](std::optional<int> n) {
            if (!n) return;
            sum += *n;
            if (++count == 2 * each) a.close(), b.close();
          };
          select(on_pop(a, add), on_pop(b, add));
        }
      });
    }
    consumers.await_all();
  });
  one.join();
  two.join();
  CHECK(count == 2 * each);
  CHECK(sum == 2L * each * (each + 1) / 2);
}
