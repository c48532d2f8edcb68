// SPDX-License-Identifier: MIT
// What fibers pay to talk to one another. One iteration is one round trip, one lock and unlock, one
// message; see figures.py. SIZE 0 is the form for one thread, 1 the one for any.
#include <array>
#include <motet/motet.hpp>
#include <motet/sync/actor.hpp>
#include <motet/sync/broadcast.hpp>
#include <motet/sync/channel.hpp>
#include <motet/sync/condition_variable.hpp>
#include <motet/sync/future.hpp>
#include <motet/sync/latch.hpp>
#include <motet/sync/mutex.hpp>
#include <motet/sync/select.hpp>
#include <motet/sync/semaphore.hpp>
#include <mutex>
#include <optional>
#include <vector>

#include "measure.hpp"

namespace {

using bench::cost;

struct of_one_thread {
  using mutex = motet::local::mutex;
  using semaphore = motet::local::semaphore;
  using condition_variable = motet::local::condition_variable;
  using latch = motet::local::latch;
  using broadcast = motet::local::broadcast<int>;
  template <typename T>
  using channel = motet::local::channel<T>;
};

struct of_any_thread {
  using mutex = motet::mutex;
  using semaphore = motet::semaphore;
  using condition_variable = motet::condition_variable;
  using latch = motet::latch;
  using broadcast = motet::broadcast<int>;
  template <typename T>
  using channel = motet::channel<T>;
};

template <typename Form>
double ping_pong(std::size_t rounds) {
  typename Form::template channel<int> there;
  typename Form::template channel<int> back;
  motet::group echo;
  echo.spin([&] {
    for (std::size_t i = 0; i < rounds; ++i) back.push(*there.pop());
  });
  motet::snooze();
  return cost(rounds, [&] {
    for (std::size_t i = 0; i < rounds; ++i) {
      there.push(1);
      back.pop();
    }
  });
}

template <typename Form>
double mutex_free(std::size_t rounds) {
  typename Form::mutex lock;
  return cost(rounds, [&] {
    for (std::size_t i = 0; i < rounds; ++i) {
      lock.lock();
      lock.unlock();
    }
  });
}

template <typename Form>
double mutex_wanted(std::size_t rounds) {
  constexpr std::size_t fibers = 100;
  typename Form::mutex lock;
  std::size_t sum = 0;
  motet::group all;
  for (std::size_t i = 0; i < fibers; ++i) {
    all.spin([&] {
      for (std::size_t round = 0; round < rounds / fibers; ++round) {
        const std::lock_guard in(lock);
        ++sum;
        motet::snooze();
      }
    });
  }
  return cost(rounds, [&] { all.await_all(); });
}

/// Two fibers take turns.
template <typename Form>
double condition(std::size_t rounds) {
  typename Form::mutex lock;
  typename Form::condition_variable changed;
  bool ping = true;
  const auto play = [&](bool mine) {
    for (std::size_t i = 0; i < rounds; ++i) {
      std::unique_lock in(lock);
      changed.wait(in, [&] { return ping == mine; });
      ping = !mine;
      changed.notify_one();
    }
  };
  motet::group both;
  both.spin([&] { play(true); });
  both.spin([&] { play(false); });
  return cost(rounds, [&] { both.await_all(); });
}

template <typename Form>
double semaphores(std::size_t rounds) {
  typename Form::semaphore ping(0);
  typename Form::semaphore pong(0);
  motet::group echo;
  echo.spin([&] {
    for (std::size_t i = 0; i < rounds; ++i) {
      ping.acquire();
      pong.release();
    }
  });
  return cost(rounds, [&] {
    for (std::size_t i = 0; i < rounds; ++i) {
      ping.release();
      pong.acquire();
    }
  });
}

template <typename Form>
double select_of_4(std::size_t rounds) {
  std::array<typename Form::template channel<int>, 4> from;
  motet::group producer;
  producer.spin([&] {
    for (std::size_t i = 0; i < rounds; ++i) from[i % 4].push(1);
  });
  return cost(rounds, [&] {
    for (std::size_t i = 0; i < rounds; ++i) {
      motet::select(motet::on_pop(from[0]), motet::on_pop(from[1]), motet::on_pop(from[2]),
                    motet::on_pop(from[3]));
    }
  });
}

/// Of a set that is not known before the program runs.
template <typename Form>
double select_of_range(std::size_t rounds) {
  constexpr std::size_t size = 8;
  std::array<typename Form::template channel<int>, size> from;
  std::vector<decltype(motet::on_pop(from[0]))> cases;
  for (auto& each : from) cases.push_back(motet::on_pop(each));
  motet::group producer;
  producer.spin([&] {
    for (std::size_t i = 0; i < rounds; ++i) from[i % size].push(1);
  });
  return cost(rounds, [&] {
    for (std::size_t i = 0; i < rounds; ++i) motet::select(cases);
  });
}

/// 10 fibers count down and end.
template <typename Form>
double latches(std::size_t rounds) {
  constexpr std::ptrdiff_t size = 10;
  motet::group all;
  return cost(rounds, [&] {
    for (std::size_t i = 0; i < rounds; ++i) {
      typename Form::latch done(size);
      for (std::ptrdiff_t each = 0; each < size; ++each) all.spin([&] { done.count_down(); });
      done.wait();
    }
  });
}

/// An item is popped from 10 subscriptions, none of which misses any.
template <typename Form>
double broadcasts(std::size_t items) {
  constexpr std::size_t at_once = 32;
  typename Form::broadcast told(2 * at_once);
  [[maybe_unused]] std::size_t sum = 0;
  motet::group readers;
  for (int i = 0; i < 10; ++i) {
    readers.spin([&, mine = told.subscribe()]() mutable {
      while (const auto item = mine.pop()) sum += static_cast<std::size_t>(*item);
    });
  }
  motet::snooze();
  return cost(items, [&] {
    for (std::size_t i = 1; i <= items; ++i) {
      told.push(1);
      if (i % at_once == 0) motet::snooze();
    }
    told.close();
    readers.await_all();
  });
}

template <typename Form>
double four_to_four(std::size_t messages) {
  typename Form::template channel<int> items(64);
  [[maybe_unused]] std::size_t sum = 0;
  motet::group producers;
  motet::group consumers;
  for (int i = 0; i < 4; ++i) {
    producers.spin([&] {
      for (std::size_t n = 0; n < messages / 4; ++n) items.push(1);
    });
    consumers.spin([&] {
      for (int each : items) sum += static_cast<std::size_t>(each);
    });
  }
  return cost(messages, [&] {
    producers.await_all();
    items.close();
    consumers.await_all();
  });
}

/// A request carries where its answer is wanted.
double request(std::size_t, std::size_t rounds) {
  return motet::run([&] {
    struct question {
      int number;
      motet::promise<int> answer;
    };
    motet::actor<question> adder([](auto& questions) {
      for (;;) {
        question next = questions.receive();
        next.answer.set_value(next.number + 1);
      }
    });
    const double found = cost(rounds, [&] {
      for (std::size_t i = 0; i < rounds; ++i) {
        question next{1, {}};
        const motet::future<int> answer = next.answer.get_future();
        adder.send(std::move(next));
        answer.get();
      }
    });
    adder.cancel("done");
    return found;
  });
}

/// Which wait awake, or asleep if SIZE is 0.
double two_threads(std::size_t awake, std::size_t rounds) {
  motet::options how;
  if (awake == 0) how.busy_wait = std::chrono::microseconds(0);
  motet::channel<int> there;
  motet::channel<int> back;
  const motet::thread other(how, [&] {
    for (std::size_t i = 0; i < rounds; ++i) back.push(*there.pop());
  });
  return motet::run(how, [&] {
    return cost(rounds, [&] {
      for (std::size_t i = 0; i < rounds; ++i) {
        there.push(1);
        back.pop();
      }
    });
  });
}

template <double (*Local)(std::size_t), double (*Shared)(std::size_t)>
double either(std::size_t shared, std::size_t rounds) {
  return motet::run([&] { return shared == 0 ? Local(rounds) : Shared(rounds); });
}

constexpr bench::subject subjects[] = {
    {"ping_pong", &either<&ping_pong<of_one_thread>, &ping_pong<of_any_thread>>},
    {"mutex_free", &either<&mutex_free<of_one_thread>, &mutex_free<of_any_thread>>},
    {"mutex_wanted", &either<&mutex_wanted<of_one_thread>, &mutex_wanted<of_any_thread>>},
    {"condition", &either<&condition<of_one_thread>, &condition<of_any_thread>>},
    {"semaphores", &either<&semaphores<of_one_thread>, &semaphores<of_any_thread>>},
    {"select_of_4", &either<&select_of_4<of_one_thread>, &select_of_4<of_any_thread>>},
    {"select_of_range", &either<&select_of_range<of_one_thread>, &select_of_range<of_any_thread>>},
    {"latches", &either<&latches<of_one_thread>, &latches<of_any_thread>>},
    {"broadcasts", &either<&broadcasts<of_one_thread>, &broadcasts<of_any_thread>>},
    {"four_to_four", &either<&four_to_four<of_one_thread>, &four_to_four<of_any_thread>>},
    {"request", &request},
    {"two_threads", &two_threads},
};

}  // namespace

int main(int count, char** words) {
  return bench::main_of(subjects, count, words);
}
