// SPDX-License-Identifier: MIT
// What comes too late, or in the place of something else: an exception that no switchpoint throws,
// a limit that has passed already, a token that was replaced, a deadlock that other threads hide.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <motet/motet.hpp>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "quiet.hpp"
#include "settle.hpp"
#include "sockets.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;

namespace {

struct oops : std::runtime_error {
  oops() : std::runtime_error("oops") {}
};

/// Options that count what on_unhandled is told.
struct counting {
  counting() {
    chosen.deadlock_report = 0ms;
    chosen.on_unhandled = [this](const std::exception_ptr& error) {
      try {
        std::rethrow_exception(error);
      } catch (const oops&) {
        ++told;
      } catch (...) {
        told = -1000;
      }
    };
  }
  options chosen;
  std::atomic<int> told{0};
};

void busy(std::chrono::microseconds length) {
  const auto end = std::chrono::steady_clock::now() + length;
  while (std::chrono::steady_clock::now() < end) {
  }
}

/// In a child process, whose only thread has never used motet.
/// Returns: its exit code.
template <typename F>
int in_fresh_main(F function) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(function());
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Returns: 0 if `wait` throws deadlock.
template <typename F>
int told_of_deadlock(F wait) {
  ::alarm(20);
  try {
    wait();
  } catch (const deadlock&) {
    return 0;
  }
  return 1;
}

}  // namespace

TEST_CASE("what is raised after the last switchpoint goes to on_unhandled, the result stands",
          "[raise]") {
  counting told;
  run(told.chosen, [&] {
    channel<int> items(1);
    auto popping = spin([&] { return *items.pop(); });
    testing::settle();
    items.push(7);  // its wait is over
    CHECK(popping.raise(oops()));
    CHECK_FALSE(popping.raise(oops()));
    CHECK(popping.await() == 7);
    CHECK(told.told == 1);

    auto failing = spin([&] {
      items.pop();
      throw std::logic_error("its own");
    });
    testing::settle();
    items.push(1);
    CHECK(failing.raise(oops()));
    CHECK_THROWS_AS(failing.await(), std::logic_error);
    CHECK(told.told == 2);

    auto late = spin([] {});
    late.await();
    CHECK_FALSE(late.raise(oops()));
  });
  CHECK(told.told == 2);
}

TEST_CASE("a read that has been answered keeps its bytes, and what was raised is told", "[raise]") {
  counting told;
  run(told.chosen, [&] {
    auto ends = testing::make_socket_pair();
    auto others = testing::make_socket_pair();
    int accepted = 0;
    for (int round = 0; round < 20; ++round) {
      std::array<std::byte, 8> buffer{};
      std::array<std::byte, 8> other{};
      fiber_ref victim;
      auto raising = spin([&] {
        io::read(others.first(), other);
        return victim.raise(oops());  // the victim's read is over by now, or not yet
      });
      auto reading = spin([&] { return io::read(ends.first(), buffer); });
      victim = reading;
      testing::settle();
      REQUIRE(::write(others.second(), "x", 1) == 1);
      REQUIRE(::write(ends.second(), "abc", 3) == 3);
      std::size_t got = 0;
      try {
        got = reading.await();
      } catch (const oops&) {
        CHECK(testing::take_all(ends.first()) == "abc");
        continue;
      }
      CHECK(got == 3);
      const int too_late = raising.await() ? 1 : 0;
      accepted += too_late;
      CHECK(told.told.exchange(0) == too_late);
    }
    // libev makes a call when its descriptor's turn has come, so it may be interrupted until then.
    if (backend_name() != "libev" && !testing::kernel_acts_any_time()) CHECK(accepted > 0);
  });
}

TEST_CASE("what main is raised at its end is told", "[raise]") {
  counting told;
  run(told.chosen, [&] {
    const fiber_ref me = current();
    spin([me] { CHECK(me.raise(oops())); });
    notification never;
    channel<int> items(1);
    auto giving = spin([&] { items.push(1); });
    shield([&] { giving.await(); });
  });
  CHECK(told.told == 1);
}

TEST_CASE("what another thread raises too late is told there", "[raise][thread]") {
  counting told;
  thread other(told.chosen, [] {
    for (;;) {
      try {
        sleep();
      } catch (const oops&) {
        // of a fiber that has ended by it before it was awaited
      }
    }
  });
  int untold = 0;
  const std::size_t rounds = testing::scaled(20'000, 500);
  for (std::size_t round = 0; round < rounds; ++round) {
    fiber_ref brief = other.spin([] { snooze(); });
    const bool accepted = brief.raise(oops());
    try {
      brief.await();
    } catch (const oops&) {
      continue;  // it came in time
    }
    if (accepted) ++untold;
  }
  other.cancel();
  CHECK_THROWS_AS(other.await(), fiber_cancelled);
  CHECK(told.told == untold);
}

TEST_CASE("a token that an exception has replaced is gone, whatever its type", "[token]") {
  run([] {
    const auto replaced = [](auto give) {
      auto waiting = spin([&] {
        CHECK_THROWS_AS(suspend(), oops);
        return !move_on_after(5ms, [] { suspend(); });
      });
      testing::settle();
      give(waiting);
      waiting.raise(oops());
      CHECK(waiting.await());
    };
    replaced([](const fiber_ref& to) { to.schedule(); });
    replaced([](const fiber_ref& to) { to.schedule(3); });
    replaced([](const fiber_ref& to) { to.schedule(std::array<int, 100>{}); });
    replaced([](const fiber_ref& to) { to.schedule(std::make_unique<int>(3)); });
    replaced([](const fiber_ref& to) { to.schedule(std::string(100, 'x')); });
  });
}

TEST_CASE("a token from another thread that an exception has replaced is gone", "[token][thread]") {
  const auto replaced = [](auto give) {
    testing::run_here([&] {
      auto waiting = spin([&] {
        CHECK_THROWS_AS(suspend(), oops);
        return !move_on_after(5ms, [] { suspend(); });
      });
      testing::settle();
      std::thread other([&] {  // both are there before the fiber's thread looks
        give(waiting);
        waiting.raise(oops());
      });
      other.join();
      CHECK(waiting.await());
    });
  };
  replaced([](const fiber_ref& to) { to.schedule(); });
  replaced([](const fiber_ref& to) { to.schedule(3L); });
  replaced([](const fiber_ref& to) { to.schedule(std::make_unique<int>(3)); });
}

TEST_CASE("checkpoint and calls on descriptors know of a limit that has passed", "[scope]") {
  if (testing::on_sim()) return;  // virtual time does not pass while a fiber computes
  run([] {
    auto ends = testing::make_socket_pair();
    int passed = 0;
    for (int round = 0; round < 100; ++round) {
      passed += move_on_after(1us, [] {
        busy(20us);
        checkpoint();
      });
      passed += move_on_after(1us, [&] {
        busy(20us);
        std::byte one{};
        io::send(ends.first(), {&one, 1});
      });
      std::error_code error;
      passed += move_on_after(1us, [&] {
        busy(20us);
        std::byte one{};
        io::send(ends.first(), {&one, 1}, 0, error);
        CHECK(error == std::errc::operation_canceled);
        checkpoint();
      });
    }
    CHECK(passed == 0);
    CHECK(testing::take_all(ends.second()).empty());
  });
}

TEST_CASE("of limits that have passed the outermost speaks, and none is early", "[scope]") {
  run([] {
    bool inner_returned = false;
    const bool outer_returned = move_on_after(2ms, [&] {
      inner_returned = move_on_after(1h, [] {
        const auto begin = clock::now();
        for (;;) {
          checkpoint();
          if (testing::on_sim()) sleep_for(100us);
          REQUIRE(clock::now() - begin < 1min);
        }
      });
    });
    CHECK_FALSE(outer_returned);
    CHECK_FALSE(inner_returned);
    CHECK(move_on_after(1h, [] { checkpoint(); }));
  });
}

TEST_CASE("a deadlock is told once the other threads have gone", "[deadlock]") {
  options chosen;
  chosen.deadlock_report = 100ms;
  std::mutex lock;
  std::vector<std::string> notices;
  chosen.on_notice = [&](std::string_view line) {
    const std::lock_guard guard(lock);
    notices.emplace_back(line);
  };
  std::thread other([] { std::this_thread::sleep_for(20ms); });
  run(chosen, [&] {
    channel<int> never(0);
    CHECK_THROWS_AS(never.pop(), deadlock);
  });
  CHECK(notices.empty());
  other.join();
}

TEST_CASE("main is a fiber from its first wait on", "[deadlock]") {
  const std::array waits{
      +[] { channel<int>(0).pop(); },
      +[] { channel<int>(0).push(1); },
      +[] { event().wait(); },
      +[] { notification().wait(); },
      +[] { semaphore(0).acquire(); },
      +[] {
        mutex held;
        held.lock();
        condition_variable().wait(held);
      },
      +[] {
        shared_mutex shared;
        shared.lock_shared();
        shared.lock();
      },
  };
  for (std::size_t i = 0; i < waits.size(); ++i) {
    INFO("wait " << i);
    CHECK(in_fresh_main([&] { return told_of_deadlock(waits[i]); }) == 0);
  }
  // What need not wait starts nothing.
  const auto starts_nothing = [] {
    channel<int> items(1);
    items.push(1);
    items.pop();
    mutex free;
    free.lock();
    free.unlock();
    return run([] { return 0; });
  };
  CHECK(in_fresh_main(starts_nothing) == 0);
  // A lock that was taken before is the main fiber's, and another thread can still answer.
  const auto goes_on = [] {
    ::alarm(20);
    mutex before;
    before.lock();
    channel<int> items(0);
    std::thread giving([&] {
      std::this_thread::sleep_for(20ms);
      items.push(5);
    });
    const bool got = items.pop() == 5;
    before.unlock();
    giving.join();
    return got && spin([] { return 3; }).await() == 3 ? 0 : 1;
  };
  CHECK(in_fresh_main(goes_on) == 0);
}

TEST_CASE("more permits than the limit can be acquired once they have been added", "[semaphore]") {
  run([] {
    semaphore permits(1);
    auto greedy = spin([&] { permits.acquire(3); });
    auto behind = spin([&] { permits.acquire(); });
    testing::settle();
    CHECK(greedy.state() == fiber_state::waiting);
    permits.set_limit(3);
    greedy.await();
    CHECK(behind.state() == fiber_state::waiting);
    permits.release(3);
    behind.await();
  });
}

TEST_CASE("a notification that nobody waits for is not kept", "[condition_variable]") {
  run([] {
    mutex guard;
    condition_variable changed;
    changed.notify_one();
    auto waiting = spin([&] {
      std::unique_lock held(guard);
      changed.wait(held);
    });
    testing::settle();
    CHECK(waiting.state() == fiber_state::waiting);
    changed.notify_one();  // the mutex is free
    waiting.await();
  });
}

TEST_CASE("a shutdown after a reset says so without throwing", "[net]") {
  run([] {
    net::tcp_listener listener(net::endpoint::loopback(0));
    auto here = net::tcp_stream::connect(listener.local_endpoint());
    {
      auto there = listener.accept();
      const linger at_once{1, 0};
      ::setsockopt(there.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    std::array<std::byte, 1> byte{};
    CHECK_THROWS_AS(here.read(byte), std::system_error);
    std::error_code error;
    here.shutdown(SHUT_WR, error);
    CHECK(error == std::errc::not_connected);
    CHECK_THROWS_AS(here.shutdown(SHUT_WR), std::system_error);
    net::tcp_stream none;
    none.shutdown(SHUT_WR, error);
    CHECK(error == std::errc::bad_file_descriptor);
    auto again = net::tcp_stream::connect(listener.local_endpoint());
    again.shutdown(SHUT_WR, error);
    CHECK(!error);
  });
}

TEST_CASE("a connect that was interrupted has not happened, and can be made again", "[net]") {
  for (const int mode : {0, static_cast<int>(SOCK_NONBLOCK)}) {
    INFO("mode " << mode);
    run([&] {
      const fd listener = testing::make_listener(0, 0);
      const std::uint16_t port = testing::port_of(listener.get());
      const fd first = testing::connect_to(port);  // no more come in
      const fd socket = testing::make_tcp_socket(mode);
      const sockaddr_in to = testing::loopback_address(port);
      const auto connect = [&] {
        io::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to);
      };
      CHECK(!move_on_after(20ms, connect));
      CHECK(!move_on_after(20ms, [&] { net::tcp_stream::connect(net::endpoint::loopback(port)); }));
      const fd taken(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      connect();
      const fd second(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      REQUIRE(::send(socket.get(), "hello", 5, 0) == 5);
      CHECK(testing::ready_now(second.get(), 0) == false);
      std::array<std::byte, 8> bytes{};
      CHECK(io::recv(second.get(), bytes) == 5);
      net::tcp_stream::connect(net::endpoint::loopback(port));
    });
  }
}

TEST_CASE("a thread that is cancelled by pthread_cancel ends when its runtime has", "[thread]") {
  struct told {
    std::atomic<bool> waits{false};
    bool returned = false;
  } seen;
  const auto body = [](void* argument) -> void* {
    told& to = *static_cast<told*>(argument);
    testing::run_here([&] {
      auto ends = testing::make_socket_pair();
      to.waits = true;
      std::array<std::byte, 1> byte{};
      move_on_after(50ms, [&] { io::read(ends.first(), byte); });
      sleep_for(1ms);
    });
    to.returned = true;
    for (;;) ::pause();
  };
  pthread_t number{};
  REQUIRE(::pthread_create(&number, nullptr, body, &seen) == 0);
  while (!seen.waits) std::this_thread::sleep_for(1ms);
  REQUIRE(::pthread_cancel(number) == 0);
  void* result = nullptr;
  ::pthread_join(number, &result);
  CHECK(result == PTHREAD_CANCELED);
  CHECK(seen.returned);
}
