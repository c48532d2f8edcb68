// SPDX-License-Identifier: MIT
// The same with Boost.Fiber, which has no semaphore and no select.
#include <boost/fiber/all.hpp>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "../measure.hpp"

namespace {

namespace fibers = boost::fibers;
using bench::cost;

template <typename Body>
fibers::fiber launch(Body body) {
  static fibers::pooled_fixedsize_stack stacks;
  return fibers::fiber(fibers::launch::post, std::allocator_arg, stacks, std::move(body));
}

double ping_pong(std::size_t, std::size_t rounds) {
  fibers::unbuffered_channel<int> there;
  fibers::unbuffered_channel<int> back;
  fibers::fiber echo = launch([&] {
    for (std::size_t i = 0; i < rounds; ++i) back.push(there.value_pop());
  });
  const double found = cost(rounds, [&] {
    for (std::size_t i = 0; i < rounds; ++i) {
      there.push(1);
      back.value_pop();
    }
  });
  echo.join();
  return found;
}

double mutex_free(std::size_t, std::size_t rounds) {
  fibers::mutex lock;
  return cost(rounds, [&] {
    for (std::size_t i = 0; i < rounds; ++i) {
      lock.lock();
      lock.unlock();
    }
  });
}

double mutex_wanted(std::size_t, std::size_t rounds) {
  constexpr std::size_t count = 100;
  fibers::mutex lock;
  std::size_t sum = 0;
  std::vector<fibers::fiber> all;
  for (std::size_t i = 0; i < count; ++i) {
    all.push_back(launch([&] {
      for (std::size_t round = 0; round < rounds / count; ++round) {
        const std::lock_guard in(lock);
        ++sum;
        boost::this_fiber::yield();
      }
    }));
  }
  return cost(rounds, [&] {
    for (auto& each : all) each.join();
  });
}

double condition(std::size_t, std::size_t rounds) {
  fibers::mutex lock;
  fibers::condition_variable changed;
  bool ping = true;
  const auto play = [&](bool mine) {
    for (std::size_t i = 0; i < rounds; ++i) {
      std::unique_lock in(lock);
      changed.wait(in, [&] { return ping == mine; });
      ping = !mine;
      changed.notify_one();
    }
  };
  fibers::fiber one = launch([&] { play(true); });
  fibers::fiber two = launch([&] { play(false); });
  return cost(rounds, [&] {
    one.join();
    two.join();
  });
}

double four_to_four(std::size_t, std::size_t messages) {
  fibers::buffered_channel<int> items(64);
  std::size_t sum = 0;
  std::vector<fibers::fiber> producers;
  std::vector<fibers::fiber> consumers;
  for (int i = 0; i < 4; ++i) {
    producers.push_back(launch([&] {
      for (std::size_t n = 0; n < messages / 4; ++n) items.push(1);
    }));
    consumers.push_back(launch([&] {
      for (int each : items) sum += static_cast<std::size_t>(each);
    }));
  }
  return cost(messages, [&] {
    for (auto& each : producers) each.join();
    items.close();
    for (auto& each : consumers) each.join();
  });
}

double request(std::size_t, std::size_t rounds) {
  struct question {
    int number;
    fibers::promise<int> answer;
  };
  fibers::buffered_channel<std::unique_ptr<question>> questions(64);
  fibers::fiber adder = launch([&] {
    for (std::size_t i = 0; i < rounds; ++i) {
      const auto next = questions.value_pop();
      next->answer.set_value(next->number + 1);
    }
  });
  const double found = cost(rounds, [&] {
    for (std::size_t i = 0; i < rounds; ++i) {
      auto next = std::make_unique<question>();
      next->number = 1;
      fibers::future<int> answer = next->answer.get_future();
      questions.push(std::move(next));
      answer.get();
    }
  });
  adder.join();
  return found;
}

double two_threads(std::size_t, std::size_t rounds) {
  fibers::unbuffered_channel<int> there;
  fibers::unbuffered_channel<int> back;
  std::thread other([&] {
    for (std::size_t i = 0; i < rounds; ++i) back.push(there.value_pop());
  });
  const double found = cost(rounds, [&] {
    for (std::size_t i = 0; i < rounds; ++i) {
      there.push(1);
      back.value_pop();
    }
  });
  other.join();
  return found;
}

constexpr bench::subject subjects[] = {
    {"ping_pong", &ping_pong},     {"mutex_free", &mutex_free}, {"mutex_wanted", &mutex_wanted},
    {"condition", &condition},     {"request", &request},       {"four_to_four", &four_to_four},
    {"two_threads", &two_threads},
};

}  // namespace

int main(int count, char** words) {
  return bench::main_of(subjects, count, words);
}
