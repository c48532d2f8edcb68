// SPDX-License-Identifier: MIT
// Bugs of the kind that need a rare order, each found within 1,000 seeds; and the same programs
// without the bug, which pass.
#include <chrono>
#include <functional>
#include <motet/motet.hpp>
#include <motet/testing.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "testing/simulations.hpp"

namespace {

using namespace motet;
using namespace std::chrono_literals;
using motet::testing::order;
using motet::testing::plan;
using motet::testing::world;
using ::testing::require;

/// The waiter looks at the flag, and then waits for a notification that may have come in between.
void lost_wake_up(world&, bool correct) {
  condition_variable changed;
  mutex lock;
  bool ready = false;
  group tasks;
  tasks.spin([&] {
    if (correct) {
      std::unique_lock<mutex> hold(lock);
      while (!ready) changed.wait(hold);
      return;
    }
    if (ready) return;
    snooze();  // "log that we wait"
    std::unique_lock<mutex> hold(lock);
    changed.wait(hold);
  });
  tasks.spin([&] {
    const std::lock_guard<mutex> hold(lock);
    ready = true;
    changed.notify_all();
  });
  tasks.await_all();
}

/// Two withdrawals see the same balance.
void check_then_act(world& in, bool correct) {
  int balance = 100;
  mutex lock;
  in.always([&] { return balance >= 0; });
  group tasks;
  for (int i = 0; i < 2; ++i) {
    tasks.spin([&] {
      std::optional<std::lock_guard<mutex>> hold;
      if (correct) hold.emplace(lock);
      if (balance < 60) return;
      snooze();  // "ask the bank"
      balance -= 60;
      snooze();
    });
  }
  tasks.await_all();
}

/// Two fibers lock two mutexes in opposite orders.
void lock_order(world&, bool correct) {
  mutex first;
  mutex second;
  group tasks;
  tasks.spin([&] {
    const std::lock_guard<mutex> one(first);
    snooze();
    const std::lock_guard<mutex> other(second);
  });
  tasks.spin([&] {
    const std::lock_guard<mutex> one(correct ? first : second);
    snooze();
    const std::lock_guard<mutex> other(correct ? second : first);
  });
  tasks.await_all();
}

/// One notification for two fibers that wait for different things.
void notify_one_of_many(world&, bool correct) {
  condition_variable changed;
  mutex lock;
  int turn = 0;
  group tasks;
  for (const int mine : {1, 2}) {
    tasks.spin([&, mine] {
      std::unique_lock<mutex> hold(lock);
      while (turn != mine) changed.wait(hold);
      turn = mine + 1;
      changed.notify_all();
    });
  }
  tasks.spin([&] {
    snooze();
    const std::lock_guard<mutex> hold(lock);
    turn = 1;
    if (correct) {
      changed.notify_all();
    } else {
      changed.notify_one();
    }
  });
  tasks.await_all();
}

/// `if` where it must be `while`: another consumer takes the item first.
void condition_not_repeated(world&, bool correct) {
  condition_variable changed;
  mutex lock;
  std::vector<int> items;
  const auto consume = [&] {
    std::unique_lock<mutex> hold(lock);
    if (correct) {
      while (items.empty()) changed.wait(hold);
    } else if (items.empty()) {
      changed.wait(hold);
    }
    require(!items.empty(), "an item is there");
    items.pop_back();
  };
  group tasks;
  for (int i = 0; i < 2; ++i) tasks.spin(consume);
  for (int i = 0; i < 2; ++i) {
    tasks.spin([&] {
      const std::lock_guard<mutex> hold(lock);
      items.push_back(1);
      changed.notify_all();
    });
  }
  tasks.await_all();
}

/// A client whose limit ends its request sends it again; the server performs both.
void duplicate_request(world& in, bool correct) {
  int performed = 0;
  int last_request = -1;
  channel<int> requests(4);
  channel<int> answers(4);
  group server;
  server.spin([&] {
    while (const auto request = requests.pop()) {
      sleep_for(1ms * in.random(20));
      if (!correct || *request != last_request) ++performed;
      last_request = *request;
      answers.push(*request);
    }
  });
  requests.push(1);
  if (!move_on_after(15ms, [&] { answers.pop(); })) {
    requests.push(1);
    answers.pop();
  }
  requests.close();
  server.await_all();
  require(performed == 1, "a request is performed once");
}

/// A leader writes, although its lease ended while it prepared to.
void stale_leader(world& in, bool correct) {
  int leader = 1;
  std::vector<int> writers;
  group tasks;
  tasks.spin([&] {
    sleep_for(10ms);
    leader = 2;
    writers.push_back(2);
  });
  tasks.spin([&] {
    const bool may_write = leader == 1;
    sleep_for(1ms * in.random(12));
    if (correct ? leader == 1 : may_write) writers.push_back(1);
  });
  tasks.await_all();
  require(writers.back() == 2, "only the leader writes");
}

/// The pool is closed while a user is between taking and using a connection.
void closed_too_early(world& in, bool correct) {
  bool open = true;
  latch used(1);
  group users;
  users.spin([&] {
    for (std::uint32_t turns = in.random(4); turns > 0; --turns) snooze();
    require(open, "the connection is open while it is used");
    used.count_down();
  });
  if (correct) used.wait();
  for (std::uint32_t turns = in.random(4); turns > 0; --turns) snooze();
  open = false;
  users.await_all();
}

/// select() takes any branch that can proceed: a stop does not come before items.
void stop_not_first(world&, bool correct) {
  channel<int> items(1);
  channel<int> stop(1);
  items.push(1);
  stop.push(1);
  bool stopped = false;
  const auto see_stop = [&](auto) { stopped = true; };
  const auto see_item = [&](auto) { require(stopped, "a stop comes first"); };
  if (correct) {
    select(in_order, on_pop(stop, see_stop), on_pop(items, see_item));
  } else {
    select(on_pop(stop, see_stop), on_pop(items, see_item));
  }
}

/// A cache is filled by each of those that miss.
void filled_twice(world&, bool correct) {
  std::optional<int> cache;
  int loads = 0;
  once loaded;
  const auto load = [&] {
    ++loads;
    sleep_for(1ms);
    cache = 42;
  };
  group tasks;
  for (int i = 0; i < 3; ++i) {
    tasks.spin([&, i] {
      sleep_for(2ms * i / 2);
      if (correct) {
        loaded.call(load);
      } else if (!cache.has_value()) {
        load();
      }
    });
  }
  tasks.await_all();
  require(loads == 1, "it is loaded once");
}

/// Only buggify() makes an answer that is empty.
void empty_answer(world&, bool correct) {
  for (int i = 0; i < 10; ++i) {
    const std::string answer = motet::testing::buggify() ? "" : "answer";
    if (correct && answer.empty()) continue;
    require(!answer.empty(), "an answer has a first character");
  }
}

using program = void (*)(world&, bool);

/// Returns: the number of seeds until one fails with that text, and no other before.
std::optional<std::size_t> seeds_until(program one, order chosen, bool correct,
                                       const std::string& failure, std::size_t seeds) {
  plan how;
  how.how = chosen;
  how.horizon = 1min;
  for (how.seed = 0; how.seed < seeds; ++how.seed) {
    const auto result = motet::testing::run(how, [&](world& in) { one(in, correct); });
    if (result.passed) continue;
    INFO(result.failure);
    CHECK(result.failure.find(failure) != std::string::npos);
    return how.seed + 1;
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("testing::run() finds planted bugs within 1,000 seeds, and none where there is none") {
  struct planted {
    const char* name;
    program run;
    const char* failure;
  };
  const char* const deadlock = "every fiber waits, and no timer is set";
  const planted all[] = {
      {"lost wake-up", &lost_wake_up, deadlock},
      {"check, then act", &check_then_act, "the invariant of "},
      {"lock order", &lock_order, deadlock},
      {"one notification for many", &notify_one_of_many, deadlock},
      {"condition not looked at again", &condition_not_repeated, "an item is there"},
      {"duplicate request", &duplicate_request, "a request is performed once"},
      {"stale leader", &stale_leader, "only the leader writes"},
      {"closed too early", &closed_too_early, "the connection is open while it is used"},
      {"stop not first", &stop_not_first, "a stop comes first"},
      {"filled twice", &filled_twice, "it is loaded once"},
      {"empty answer", &empty_answer, "an answer has a first character"}};
  for (const planted& one : all) {
    for (const order chosen : {order::any, order::pct}) {
      CAPTURE(one.name, static_cast<int>(chosen));
      const auto seeds = seeds_until(one.run, chosen, false, one.failure, 1'000);
      CHECK(seeds.has_value());
      CHECK_FALSE(seeds_until(one.run, chosen, true, "", 200).has_value());
    }
  }
}
