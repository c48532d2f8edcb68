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
  group members;
  for (int i = 0; i < 10; ++i) {
    members.spin([&sum, i] {
      sleep_for(1ms);
      sum += i;
    });
  }
  members.await_all();
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
TEST_CASE("fork(): no plain thread of the parent waits for a lock in the child", "[fork]") {
  mutex lock;
  shared_mutex rwlock;
  semaphore permits(0);
  timeslice_lock turns;
  rate_limiter rate(1, 200ms);
  rate.acquire();
  lock.lock();
  rwlock.lock();
  turns.lock();
  std::atomic<int> had{0};
  std::vector<std::thread> waiters;
  waiters.emplace_back([&] { lock.lock(), lock.unlock(), ++had; });
  waiters.emplace_back([&] { rwlock.lock(), rwlock.unlock(), ++had; });
  waiters.emplace_back([&] { permits.acquire(), ++had; });
  waiters.emplace_back([&] { turns.lock(), turns.unlock(), ++had; });
  waiters.emplace_back([&] { rate.acquire(), ++had; });
  std::this_thread::sleep_for(50ms);  // the child is right also if one waits later
  CHECK(code_of_child([&] {
          lock.unlock();
          rwlock.unlock();
          permits.release();
          turns.unlock();
          if (!lock.try_lock()) return 1;
          if (!rwlock.try_lock()) return 2;
          if (!permits.try_acquire()) return 3;
          if (!turns.try_lock()) return 4;
          std::this_thread::sleep_for(210ms);
          return rate.try_acquire() ? 0 : 5;
        }) == 0);
  lock.unlock();
  rwlock.unlock();
  permits.release();
  turns.unlock();
  for (auto& thread : waiters) thread.join();
  CHECK(had == 5);
}

TEST_CASE("fork(): a child forked by the main fiber starts afresh", "[fork]") {
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

TEST_CASE("fork(): the fiber that forks is the child's main fiber", "[fork]") {
  run([] {
    auto sleeper = spin([] { sleep(); });
    auto forking = spin([&] {
      const std::uint64_t id = current().id();
      return code_of_child([&] {
        if (current().id() != id || current().parent()) return 1;
        return use_everything();
      });
    });
    CHECK(forking.await() == 0);
    sleeper.cancel();
  });
}

TEST_CASE("fork(): no fiber of the parent waits on a primitive in the child", "[fork]") {
  run([] {
    latch steps(1);
    barrier line(2);
    broadcast<int> items(2);
    watch<int> state(0);
    auto news = items.subscribe();
    auto states = state.subscribe();
    states.next();
    int notified = 0;
    group waiters;
    waiters.spin([&] { steps.wait(), ++notified; });
    waiters.spin([&] { line.arrive_and_wait(), ++notified; });
    waiters.spin([&] { notified += news.pop().value(); });
    waiters.spin([&] { notified += states.next().value(); });
    snooze();
    CHECK(code_of_child([&] {
            steps.count_down();
            steps.wait();
            auto second = spin([&] { return line.arrive_and_wait(); });
            snooze();
            if (second.state() != fiber_state::waiting) return 1;  // no other arrived
            if (!line.arrive_and_wait() || second.await()) return 2;
            auto subscription = items.subscribe();
            items.push(5);
            state.set(6);
            if (subscription.pop() != 5 || state.get() != 6 || notified != 0) return 3;
            return use_everything();
          }) == 0);
    steps.count_down();
    items.push(1);
    state.set(1);
    CHECK(line.arrive_and_wait());
    waiters.await_all();
    CHECK(notified == 4);
  });
}

TEST_CASE("fork(): no fiber of the parent waits in the child's copy of a shared object", "[fork]") {
  run([] {
    channel<int> numbers;
    mutex lock;
    event happened;
    int popped = 0;
    group waiters;
    lock.lock();
    waiters.spin([&] { popped = numbers.pop().value(); });
    waiters.spin([&] { lock.lock(), lock.unlock(); });
    waiters.spin([&] { happened.wait(); });
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
    waiters.await_all();
    CHECK(popped == 7);
  });
}

TEMPLATE_TEST_CASE("fork(): no fiber of the parent waits for a rate in the child", "[fork]",
                   rate_limiter, local::rate_limiter) {
  run([] {
    TestType rate(1, 50ms);
    rate.acquire();
    auto waiter = spin([&] { rate.acquire(); });
    snooze();
    CHECK(code_of_child([&] {
            if (!move_on_after(10s, [&] { rate.acquire(); })) return 1;
            sleep_for(60ms);
            return rate.try_acquire() ? 0 : 2;
          }) == 0);
    waiter.await();
  });
}

TEST_CASE("fork(): no fiber of the parent has a turn on a descriptor in the child", "[fork][net]") {
  run([] {
    net::tcp_listener listener(net::endpoint::loopback(0));
    auto parent_end = net::tcp_stream::connect(listener.local_endpoint());
    auto far = listener.accept();
    group waiters;
    waiters.spin([&] { listener.accept(); });
    std::array<std::byte, 1> byte;
    waiters.spin([&] { parent_end.read(byte); });
    waiters.spin([&] { parent_end.read(byte); });
    snooze();
    CHECK(code_of_child([&] {
            far.write_all(bytes_of("x"));
            if (!move_on_after(5s, [&] { parent_end.read(byte); })) return 1;
            auto client = net::tcp_stream::connect(listener.local_endpoint());
            if (!move_on_after(5s, [&] { listener.accept(); })) return 2;
            parent_end.close();
            listener.close();
            return 0;
          }) == 0);
    waiters.cancel();
  });
}

TEST_CASE("fork(): a fiber that forks holds its locks in both processes", "[fork]") {
  run([] {
    auto forking = spin([] {
      mutex lock;
      shared_mutex rwlock;
      const std::lock_guard guard(lock);
      const std::lock_guard write_guard(rwlock);
      return code_of_child([&] {
        int refused = 0;
        for (const auto& again : {std::function<void()>([&] { lock.lock(); }),
                                  std::function<void()>([&] { rwlock.lock(); })}) {
          try {
            again();
          } catch (const std::logic_error&) {
            ++refused;
          }
        }
        lock.unlock();
        rwlock.unlock();
        return refused == 2 && lock.try_lock() && rwlock.try_lock() ? 0 : 1;
      });
    });
    CHECK(forking.await() == 0);
  });
}

TEST_CASE("fork(): deadlines set before hold in both processes", "[fork]") {
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

TEST_CASE("fork(): a group of the forking fiber ends in the child without its fibers", "[fork]") {
  run([] {
    pid_t child = -1;
    int ends = 0;
    {
      group fibers;
      fibers.spin([&ends] {
        struct counting {
          int& count;
          ~counting() { ++count; }
        } local{ends};
        sleep();
      });
      snooze();
      child = ::fork();
    }
    if (child == 0) ::_exit(ends == 0 && use_everything() == 0 ? 0 : 1);
    CHECK(ends == 1);
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(status == 0);
  });
}

TEST_CASE("fork() in the middle of traffic loses nothing", "[fork]") {
  run([] {
    constexpr int connections = 8;
    const int rounds = static_cast<int>(testing::scaled(2'000, 100));
    net::tcp_listener listener(net::endpoint::loopback(0));
    group members;
    auto server = members.spin([&] {
      listener.serve([](net::tcp_stream peer) {
        std::array<std::byte, 64> buffer;
        while (const auto n = peer.read(buffer)) peer.write_all(std::span(buffer).first(n));
      });
    });
    int echoed = 0;
    std::vector<fiber<void>> clients;
    for (int i = 0; i < connections; ++i) {
      clients.push_back(members.spin([&] {
        auto peer = net::tcp_stream::connect(listener.local_endpoint());
        for (int round = 0; round < rounds; ++round) {
          peer.write_all(bytes_of("ping"));
          std::array<std::byte, 4> answer;
          for (std::size_t count = 0; count < answer.size();) {
            count += peer.read(std::span(answer).subspan(count));
          }
          ++echoed;
        }
      }));
    }
    for (int forks = 0; forks < 5; ++forks) {
      CHECK(code_of_child(use_everything) == 0);
      for (int i = 0; i < 50; ++i) snooze();
    }
    for (auto& client : clients) client.await();
    CHECK(echoed == connections * rounds);
    server.cancel();
  });
}

TEST_CASE("fork() finds no mailbox in an inconsistent state", "[fork]") {
  run([] {
    auto target = spin([] {
      for (;;) suspend<int>();
    });
    snooze();
    std::atomic<bool> finished{false};
    std::thread busy([&] {
      while (!finished) target.schedule(1);
    });
    for (int i = 0; i < 20; ++i) {
      CHECK(code_of_child([&] { return target.schedule(1) ? 1 : use_everything(); }) == 0);
      for (int j = 0; j < 10; ++j) snooze();
    }
    finished = true;
    busy.join();
    target.cancel();
  });
}

TEST_CASE("fork(): a child has none of its parent's threads, and their objects say so",
          "[fork][thread]") {
  run([] {
    motet::thread worker([] { sleep(); });
    thread_pool pool(2);
    std::atomic<bool> finished{false};
    motet::thread busy([&] {
      while (!finished) pool.submit([] {}).get();
    });
    for (int i = 0; i < 10; ++i) {
      CHECK(code_of_child([&] {
              if (!is_refused([&] { worker.post([] {}); })) return 1;
              if (!is_refused([&] { worker.call([] {}); })) return 2;
              if (!is_refused([&] { worker.spin([] {}); })) return 3;
              if (!is_refused([&] { pool.submit([] {}); })) return 4;
              {
                const motet::thread moved_thread = std::move(worker);
              }
              if (testing::under_tsan) return use_everything();  // it allows no thread there
              motet::thread own_thread([] { sleep(); });
              if (own_thread.call([] { return 5; }) != 5) return 6;
              thread_pool own_pool(2);
              if (own_pool.submit([] { return 6; }).get() != 6) return 7;
              return use_everything();
            }) == 0);
      worker.call([] {});
    }
    finished = true;
    busy.await();
  });
}

TEST_CASE("fork(): a child that a plain thread has forked counts only its own threads",
          "[fork][thread]") {
  if (testing::under_tsan) return;  // it allows no thread there
  const thread_pool pool(3);
  pool.stats();
  std::this_thread::sleep_for(5ms);  // its workers are idle
  CHECK(code_of_child([] {
          bool woken = false;
          run([&] {
            event go;
            std::thread remote([&] {
              std::this_thread::sleep_for(20ms);
              go.set();
            });
            go.wait();
            woken = true;
            remote.join();
          });
          return woken ? 0 : 1;
        }) == 0);
}

TEST_CASE("fork(): a child can migrate anywhere, wherever its fiber was in the parent",
          "[fork][teleport]") {
  if (testing::under_tsan) return;  // which lets no child start threads
  testing::run_here([] {
    motet::thread worker(testing::quiet(), [] { sleep(); });
    {
      const portal open(worker);
    }
    const int code = code_of_child([] {
      motet::thread own_thread(testing::quiet(), [] { sleep(); });
      const auto thread_id = ::gettid();
      {
        const portal open(own_thread);
        if (::gettid() == thread_id) return 1;
      }
      return ::gettid() == thread_id ? 0 : 2;
    });
    CHECK(code == 0);
    const portal again(worker);
  });
}

TEST_CASE("fork(): a child process leaves the scopes that its caller was in", "[fork]") {
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

TEST_CASE("fork(): a child's fiber can be cancelled, even if its parent was when it forked",
          "[fork]") {
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

TEST_CASE("fork(): a child that is forked while a stall is reported leaks no report", "[fork]") {
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
