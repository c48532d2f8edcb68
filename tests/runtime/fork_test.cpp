// SPDX-License-Identifier: MIT
// fork() with a live runtime: the child has one fiber and a backend of its own, and the parent
// notices nothing. What a child finds wrong is its exit code.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <motet/motet.hpp>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "quiet.hpp"
#include "support.hpp"

#if defined(MOTET_ASAN)
#include <sanitizer/lsan_interface.h>
#endif

using namespace motet;
using namespace std::chrono_literals;
using testing::bytes_of;

namespace {

/// Returns: the exit code of a child that calls `body`; 99 if that threw.
int code_of_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    int code = 99;
    try {
      code = body();
    } catch (...) {
    }
    ::_exit(code);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/// Returns: whether a sanitizer finds leaks in this process.
int has_leaks() {
#if defined(MOTET_ASAN)
  return __lsan_do_recoverable_leak_check();
#else
  return 0;
#endif
}

/// Uses all there is: switches, time, descriptors, another thread.
int use_everything() {
  int sum = 0;
  group all;
  for (int i = 0; i < 10; ++i) {
    all.spin([&sum, i] {
      sleep_for(1ms);
      sum += i;
    });
  }
  all.await_all();
  if (sum != 45) return 1;
  auto pipe = testing::make_pipe();
  auto reader = spin([&] {
    std::byte byte[1];
    return io::read(pipe.first(), byte);
  });
  snooze();
  io::write(pipe.second(), bytes_of("x"));
  if (reader.await() != 1) return 2;
  if (move_on_after(1ms, [] { sleep(); })) return 3;
  return 0;
}

template <typename F>
bool is_refused(F f) {
  try {
    f();
  } catch (const executor_stopped&) {
    return true;
  }
  return false;
}

}  // namespace

// First, when this process has had no fibers yet: they would see to it.
TEST_CASE("in a child no plain thread is left that waited for a lock", "[fork]") {
  mutex lock;
  shared_mutex both;
  semaphore permits(0);
  timeslice_lock turns;
  rate_limiter rate(1, 200ms);
  rate.acquire();
  lock.lock();
  both.lock();
  turns.lock();
  std::atomic<int> had{0};
  std::vector<std::thread> waiting;
  waiting.emplace_back([&] { lock.lock(), lock.unlock(), ++had; });
  waiting.emplace_back([&] { both.lock(), both.unlock(), ++had; });
  waiting.emplace_back([&] { permits.acquire(), ++had; });
  waiting.emplace_back([&] { turns.lock(), turns.unlock(), ++had; });
  waiting.emplace_back([&] { rate.acquire(), ++had; });
  std::this_thread::sleep_for(50ms);  // the child is right also if one waits later
  CHECK(code_of_child([&] {
          lock.unlock();
          both.unlock();
          permits.release();
          turns.unlock();
          if (!lock.try_lock()) return 1;
          if (!both.try_lock()) return 2;
          if (!permits.try_acquire()) return 3;
          if (!turns.try_lock()) return 4;
          std::this_thread::sleep_for(210ms);
          return rate.try_acquire() ? 0 : 5;
        }) == 0);
  lock.unlock();
  both.unlock();
  permits.release();
  turns.unlock();
  for (auto& each : waiting) each.join();
  CHECK(had == 5);
}

TEST_CASE("a child that was forked by the main fiber starts anew", "[fork]") {
  run([] {
    auto sleeper = spin([] { sleep(); });
    snooze();
    CHECK(code_of_child(use_everything) == 0);
    CHECK(code_of_child([&] {
            // What was spun before the fork is there no more.
            return sleeper.cancel() == cancel_result::finished && current().children().empty() ? 0
                                                                                               : 1;
          }) == 0);
    CHECK(use_everything() == 0);
    CHECK(sleeper.cancel() == cancel_result::accepted);
    CHECK_THROWS_AS(sleeper.await(), fiber_cancelled);
  });
}

TEST_CASE("a fiber that forks is the child's main fiber", "[fork]") {
  run([] {
    auto other = spin([] { sleep(); });
    auto forking = spin([&] {
      const std::uint64_t id = current().id();
      return code_of_child([&] {
        if (current().id() != id || current().parent()) return 1;
        return use_everything();
      });
    });
    CHECK(forking.await() == 0);
    other.cancel();
  });
}

TEST_CASE("in a child nobody is left who waited at a meeting point", "[fork]") {
  run([] {
    latch steps(1);
    barrier line(2);
    broadcast<int> items(2);
    watch<int> state(0);
    auto news = items.subscribe();
    auto seen = state.subscribe();
    seen.next();
    int told = 0;
    group waiting;
    waiting.spin([&] { steps.wait(), ++told; });
    waiting.spin([&] { line.arrive_and_wait(), ++told; });
    waiting.spin([&] { told += news.pop().value(); });
    waiting.spin([&] { told += seen.next().value(); });
    snooze();
    CHECK(code_of_child([&] {
            steps.count_down();
            steps.wait();
            auto other = spin([&] { return line.arrive_and_wait(); });
            snooze();
            if (other.state() != fiber_state::waiting) return 1;  // no other arrived
            if (!line.arrive_and_wait() || other.await()) return 2;
            auto mine = items.subscribe();
            items.push(5);
            state.set(6);
            if (mine.pop() != 5 || state.get() != 6 || told != 0) return 3;
            return use_everything();
          }) == 0);
    steps.count_down();
    items.push(1);
    state.set(1);
    CHECK(line.arrive_and_wait());
    waiting.await_all();
    CHECK(told == 4);
  });
}

TEST_CASE("in a child nobody is left who waited on what the two now have each", "[fork]") {
  run([] {
    channel<int> numbers;
    mutex lock;
    event happened;
    int popped = 0;
    group waiting;
    lock.lock();
    waiting.spin([&] { popped = numbers.pop().value(); });
    waiting.spin([&] { lock.lock(), lock.unlock(); });
    waiting.spin([&] { happened.wait(); });
    snooze();
    CHECK(code_of_child([&] {
            if (numbers.try_push(1)) return 1;
            lock.unlock();
            if (!lock.try_lock()) return 2;
            lock.unlock();
            happened.set();
            happened.wait();
            auto pusher = spin([&] { numbers.push(2); });
            if (numbers.pop() != 2 || popped != 0) return 3;
            return use_everything();
          }) == 0);
    numbers.push(7);
    lock.unlock();
    happened.set();
    waiting.await_all();
    CHECK(popped == 7);
  });
}

TEMPLATE_TEST_CASE("in a child nobody is left who waited for a rate", "[fork]", rate_limiter,
                   local::rate_limiter) {
  run([] {
    TestType rate(1, 50ms);
    rate.acquire();
    auto waiting = spin([&] { rate.acquire(); });
    snooze();
    CHECK(code_of_child([&] {
            if (!move_on_after(10s, [&] { rate.acquire(); })) return 1;
            sleep_for(60ms);
            return rate.try_acquire() ? 0 : 2;
          }) == 0);
    waiting.await();
  });
}

TEST_CASE("in a child it is nobody's turn on a descriptor", "[fork][net]") {
  run([] {
    net::tcp_listener listener(net::endpoint::loopback(0));
    auto near = net::tcp_stream::connect(listener.local_endpoint());
    auto far = listener.accept();
    group waiting;
    waiting.spin([&] { listener.accept(); });
    std::array<std::byte, 1> byte;
    waiting.spin([&] { near.read(byte); });
    waiting.spin([&] { near.read(byte); });
    snooze();
    CHECK(code_of_child([&] {
            far.write_all(bytes_of("x"));
            if (!move_on_after(5s, [&] { near.read(byte); })) return 1;
            auto client = net::tcp_stream::connect(listener.local_endpoint());
            if (!move_on_after(5s, [&] { listener.accept(); })) return 2;
            near.close();
            listener.close();
            return 0;
          }) == 0);
    waiting.cancel();
  });
}

TEST_CASE("a fiber that forks holds in both processes what it held", "[fork]") {
  run([] {
    auto forking = spin([] {
      mutex lock;
      shared_mutex both;
      const std::lock_guard held(lock);
      const std::lock_guard writing(both);
      return code_of_child([&] {
        int refused = 0;
        for (const auto& again : {std::function<void()>([&] { lock.lock(); }),
                                  std::function<void()>([&] { both.lock(); })}) {
          try {
            again();
          } catch (const std::logic_error&) {
            ++refused;
          }
        }
        lock.unlock();
        both.unlock();
        return refused == 2 && lock.try_lock() && both.try_lock() ? 0 : 1;
      });
    });
    CHECK(forking.await() == 0);
  });
}

TEST_CASE("deadlines that were armed before a fork hold in both processes", "[fork]") {
  run([] {
    const auto start = clock::now();
    pid_t child = -1;
    const bool in_time = move_on_after(20ms, [&] {
      child = ::fork();
      sleep();
    });
    const bool right = !in_time && clock::now() - start >= 20ms;
    if (child == 0) ::_exit(right && use_everything() == 0 ? 0 : 1);
    CHECK(right);
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(status == 0);
  });
}

TEST_CASE("a group whose fiber forks ends in the child without those it had", "[fork]") {
  run([] {
    pid_t child = -1;
    int ended = 0;
    {
      group both;
      both.spin([&ended] {
        struct counting {
          int& count;
          ~counting() { ++count; }
        } local{ended};
        sleep();
      });
      snooze();
      child = ::fork();
    }
    if (child == 0) ::_exit(ended == 0 && use_everything() == 0 ? 0 : 1);
    CHECK(ended == 1);
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(status == 0);
  });
}

TEST_CASE("a process that forks in the middle of traffic loses none of it", "[fork]") {
  run([] {
    constexpr int connections = 8;
    const int rounds = static_cast<int>(testing::scaled(2'000, 100));
    net::tcp_listener listener(net::endpoint::loopback(0));
    group all;
    auto server = all.spin([&] {
      listener.serve([](net::tcp_stream peer) {
        std::array<std::byte, 64> buffer;
        while (const auto n = peer.read(buffer)) peer.write_all(std::span(buffer).first(n));
      });
    });
    int echoed = 0;
    std::vector<fiber<void>> clients;
    for (int i = 0; i < connections; ++i) {
      clients.push_back(all.spin([&] {
        auto peer = net::tcp_stream::connect(listener.local_endpoint());
        for (int round = 0; round < rounds; ++round) {
          peer.write_all(bytes_of("ping"));
          std::array<std::byte, 4> answer;
          for (std::size_t got = 0; got < answer.size();) {
            got += peer.read(std::span(answer).subspan(got));
          }
          ++echoed;
        }
      }));
    }
    for (int forks = 0; forks < 5; ++forks) {
      CHECK(code_of_child(use_everything) == 0);
      for (int i = 0; i < 50; ++i) snooze();
    }
    for (auto& each : clients) each.await();
    CHECK(echoed == connections * rounds);
    server.cancel();
  });
}

TEST_CASE("a fork finds no mailbox in the middle of something", "[fork]") {
  run([] {
    auto target = spin([] {
      for (;;) suspend<int>();
    });
    snooze();
    std::atomic<bool> over{false};
    std::thread busy([&] {
      while (!over) target.schedule(1);
    });
    for (int i = 0; i < 20; ++i) {
      CHECK(code_of_child([&] { return target.schedule(1) ? 1 : use_everything(); }) == 0);
      for (int j = 0; j < 10; ++j) snooze();
    }
    over = true;
    busy.join();
    target.cancel();
  });
}

TEST_CASE("a child has none of its parent's threads, and their objects say so", "[fork][thread]") {
  run([] {
    motet::thread kept([] { sleep(); });
    thread_pool pool(2);
    std::atomic<bool> over{false};
    motet::thread busy([&] {
      while (!over) pool.submit([] {}).get();
    });
    for (int i = 0; i < 10; ++i) {
      CHECK(code_of_child([&] {
              if (!is_refused([&] { kept.post([] {}); })) return 1;
              if (!is_refused([&] { kept.call([] {}); })) return 2;
              if (!is_refused([&] { kept.spin([] {}); })) return 3;
              if (!is_refused([&] { pool.submit([] {}); })) return 4;
              {
                const motet::thread gone = std::move(kept);
              }
              if (testing::under_tsan) return use_everything();  // it allows no thread there
              motet::thread own([] { sleep(); });
              if (own.call([] { return 5; }) != 5) return 6;
              thread_pool own_pool(2);
              if (own_pool.submit([] { return 6; }).get() != 6) return 7;
              return use_everything();
            }) == 0);
      kept.call([] {});
    }
    over = true;
    busy.await();
  });
}

TEST_CASE("a child that a plain thread has forked counts its own threads alone", "[fork][thread]") {
  if (testing::under_tsan) return;  // it allows no thread there
  const thread_pool pool(3);
  pool.stats();
  std::this_thread::sleep_for(5ms);  // its workers are idle
  CHECK(code_of_child([] {
          bool woken = false;
          run([&] {
            event go;
            std::thread other([&] {
              std::this_thread::sleep_for(20ms);
              go.set();
            });
            go.wait();
            woken = true;
            other.join();
          });
          return woken ? 0 : 1;
        }) == 0);
}

TEST_CASE("a child goes anywhere, wherever its fiber has been in the parent", "[fork][teleport]") {
  if (testing::under_tsan) return;  // which lets no child start threads
  testing::run_here([] {
    motet::thread there(testing::quiet(), [] { sleep(); });
    {
      const portal open(there);
    }
    const int code = code_of_child([] {
      motet::thread own(testing::quiet(), [] { sleep(); });
      const auto here = ::gettid();
      {
        const portal open(own);
        if (::gettid() == here) return 1;
      }
      return ::gettid() == here ? 0 : 2;
    });
    CHECK(code == 0);
    const portal again(there);
  });
}

TEST_CASE("a child process leaves the scopes that its caller was in", "[fork]") {
  if (testing::under_tsan) return;
  run([] {
    std::stop_source never;
    const auto fork_inside = [&](auto self, int depth) -> void {
      if (depth > 0) {
        move_on_when_stopped(never.get_token(), [&] { self(self, depth - 1); });
        return;
      }
      const pid_t child = ::fork();
      if (child == 0) {
        bool fine = true;
        for (int i = 0; i < 8; ++i) fine = fine && move_on_after(1h, [] { snooze(); });
        ::_exit(fine ? 0 : 1);
      }
      int status = -1;
      ::waitpid(child, &status, 0);
      CHECK(status == 0);
    };
    fork_inside(fork_inside, 6);
  });
}

TEST_CASE("a child's fiber can be cancelled, though its parent's was when it forked", "[fork]") {
  if (testing::under_tsan) return;  // it allows no thread there
  testing::run_here([] {
    auto forks = spin([] {
      const auto ask = [me = current()] {
        cancel_result answer{};
        std::thread([&] { answer = me.cancel(); }).join();
        return answer;
      };
      CHECK(ask() == cancel_result::accepted);
      CHECK(ask() == cancel_result::already);
      CHECK(code_of_child([&] { return ask() == cancel_result::accepted ? 0 : 1; }) == 0);
      sleep();
    });
    CHECK_THROWS_AS(forks.await(), fiber_cancelled);
  });
}

TEST_CASE("a child that is forked while a stall is reported has no leak of the report", "[fork]") {
  options watched = testing::quiet();
  watched.stall_report = 10ms;
  watched.on_notice = [](std::string_view) {};
  run(watched, [] {
    for (std::size_t round = 0; round < testing::scaled(50, 10); ++round) {
      std::this_thread::sleep_for(10ms + 200us * round);  // the report comes about now
      CHECK(code_of_child(has_leaks) == 0);
      snooze();
    }
  });
}
