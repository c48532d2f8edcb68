// SPDX-License-Identifier: MIT
// Locks of the C and C++ libraries, locked by the fibers of one thread, by several threads, and by
// code that knows nothing of fibers.
#include <pthread.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <functional>
#include <motet/motet.hpp>
#include <motet/posix.hpp>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "posix/journal.hpp"

#if defined(MOTET_TSAN)
/// Some of the tests unlock what they do not own, hold more locks than the sanitizer counts, or
/// lock them in an order that could deadlock. NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" const char* __tsan_default_options() {
  return "report_mutex_bugs=0:detect_deadlocks=0";
}
#endif

namespace {

using namespace motet;
using namespace std::chrono_literals;

pthread_mutex_t mutex_of(int type) {
  pthread_mutexattr_t attributes{};
  pthread_mutex_t mutex{};
  ::pthread_mutexattr_init(&attributes);
  ::pthread_mutexattr_settype(&attributes, type);
  REQUIRE(::pthread_mutex_init(&mutex, &attributes) == 0);
  ::pthread_mutexattr_destroy(&attributes);
  return mutex;
}

/// How many fibers are inside of what only one may be in.
class exclusion {
 public:
  void enter() {
    if (++inside_ != 1) violated_ = true;
  }
  void leave() { --inside_; }
  bool held() const { return !violated_; }

 private:
  std::atomic<int> inside_{0};
  std::atomic<bool> violated_{false};
};

/// `count` fibers each hold the lock several times, across a wait.
void contend(int count, const std::function<void()>& lock, const std::function<void()>& unlock) {
  exclusion only;
  int entries = 0;
  group fibers;
  for (int i = 0; i < count; ++i) {
    fibers.spin([&] {
      for (int j = 0; j < 5; ++j) {
        lock();
        only.enter();
        ::usleep(100);
        snooze();
        ++entries;
        only.leave();
        unlock();
      }
    });
  }
  fibers.await_all();
  CHECK(only.held());
  CHECK(entries == 5 * count);
}

std::vector<std::string> notices;

options with_notices() {
  notices.clear();
  options config;
  config.on_notice = [](std::string_view line) { notices.emplace_back(line); };
  return config;
}

bool noticed(std::string_view text) {
  for (const std::string& line : notices) {
    if (line.find(text) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE(
    "pthread_mutex_lock() excludes the other fibers of the thread, whatever the mutex's type") {
  for (const int type : {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_RECURSIVE,
                         PTHREAD_MUTEX_ADAPTIVE_NP}) {
    CAPTURE(type);
    run([&] {
      pthread_mutex_t mutex = mutex_of(type);
      contend(
          10, [&] { REQUIRE(::pthread_mutex_lock(&mutex) == 0); },
          [&] { REQUIRE(::pthread_mutex_unlock(&mutex) == 0); });
      CHECK(::pthread_mutex_destroy(&mutex) == 0);
    });
  }
}

TEST_CASE("pthread_mutex_lock() lets a recursive mutex's holder in again, and no other fiber") {
  run([] {
    pthread_mutex_t mutex = mutex_of(PTHREAD_MUTEX_RECURSIVE);
    bool is_inside = false;
    CHECK(::pthread_mutex_lock(&mutex) == 0);
    CHECK(::pthread_mutex_lock(&mutex) == 0);
    CHECK(::pthread_mutex_trylock(&mutex) == 0);
    fiber<void> other = spin([&] {
      CHECK(::pthread_mutex_trylock(&mutex) == EBUSY);
      CHECK(::pthread_mutex_unlock(&mutex) == EPERM);
      const timespec limit = testing::time_after(CLOCK_REALTIME, 5ms);
      CHECK(::pthread_mutex_timedlock(&mutex, &limit) == ETIMEDOUT);
      CHECK(::pthread_mutex_lock(&mutex) == 0);
      is_inside = true;
      CHECK(::pthread_mutex_unlock(&mutex) == 0);
    });
    sleep_for(10ms);
    CHECK(::pthread_mutex_unlock(&mutex) == 0);
    CHECK(::pthread_mutex_unlock(&mutex) == 0);
    sleep_for(10ms);
    CHECK(!is_inside);
    CHECK(::pthread_mutex_unlock(&mutex) == 0);
    other.await();
    CHECK(is_inside);
    CHECK(::pthread_mutex_unlock(&mutex) == EPERM);
  });
}

TEST_CASE("pthread_mutex_lock() of a mutex that checks errors knows its fiber") {
  run([] {
    pthread_mutex_t mutex = mutex_of(PTHREAD_MUTEX_ERRORCHECK);
    CHECK(::pthread_mutex_lock(&mutex) == 0);
    CHECK(::pthread_mutex_lock(&mutex) == EDEADLK);
    fiber<void> other = spin([&] {
      CHECK(::pthread_mutex_unlock(&mutex) == EPERM);
      CHECK(::pthread_mutex_lock(&mutex) == 0);
      CHECK(::pthread_mutex_unlock(&mutex) == 0);
    });
    sleep_for(2ms);
    CHECK(::pthread_mutex_unlock(&mutex) == 0);
    other.await();
  });
}

TEST_CASE("pthread_mutex_clocklock() in a fiber keeps its limit") {
  run([] {
    std::timed_mutex mutex;
    mutex.lock();
    spin([&] {
      const auto start = clock::now();
      CHECK(!mutex.try_lock_for(20ms));
      CHECK(clock::now() - start >= 20ms);
      CHECK(!mutex.try_lock_until(std::chrono::system_clock::now() + 5ms));
    }).await();
    mutex.unlock();
    spin([&] {
      CHECK(mutex.try_lock_for(20ms));
      mutex.unlock();
    }).await();
  });
}

TEST_CASE("pthread_mutex_lock() serves the fibers of a thread in turn") {
  run([] {
    std::mutex mutex;
    std::array<int, 2> entries{};
    bool is_over = false;
    group fibers;
    for (int& count : entries) {
      fibers.spin([&] {
        while (!is_over) {
          const std::lock_guard guard(mutex);
          ++count;
          ::usleep(500);
        }
      });
    }
    sleep_for(50ms);
    is_over = true;
    fibers.await_all();
    CHECK(std::abs(entries[0] - entries[1]) <= 1);
  });
}

TEST_CASE("pthread_mutex_lock() of another thread's mutex lets the other fibers run") {
  std::mutex first;
  std::mutex second;
  std::atomic<bool> has_second{false};
  std::thread other([&] {
    run([&] {
      const std::lock_guard guard(second);
      has_second = true;
      ::usleep(20'000);
      const std::lock_guard inner(first);
    });
  });
  run([&] {
    while (!has_second) ::usleep(500);
    fiber<void> holder = spin([&] {
      const std::lock_guard guard(first);
      ::usleep(40'000);
    });
    snooze();
    const std::lock_guard guard(second);
    holder.await();
  });
  other.join();
}

TEST_CASE("pthread_mutex_lock() in a robust mutex that checks errors knows its fiber") {
  run([] {
    pthread_mutexattr_t attributes{};
    pthread_mutex_t mutex{};
    ::pthread_mutexattr_init(&attributes);
    ::pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    ::pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    REQUIRE(::pthread_mutex_init(&mutex, &attributes) == 0);
    CHECK(::pthread_mutex_lock(&mutex) == 0);
    CHECK(::pthread_mutex_lock(&mutex) == EDEADLK);
    fiber<void> other = spin([&] {
      CHECK(::pthread_mutex_trylock(&mutex) == EBUSY);
      CHECK(::pthread_mutex_lock(&mutex) == 0);
      CHECK(::pthread_mutex_unlock(&mutex) == 0);
    });
    sleep_for(2ms);
    CHECK(::pthread_mutex_unlock(&mutex) == 0);
    other.await();
    ::pthread_mutex_destroy(&mutex);
  });
}

TEST_CASE("pthread_rwlock_wrlock() waits for readers of the thread, one's own earlier lock aside") {
  run([] {
    std::shared_mutex lock;
    bool is_read = false;
    fiber<void> reader = spin([&] {
      const std::shared_lock guard(lock);
      ::usleep(5'000);
      is_read = true;
    });
    snooze();
    lock.lock_shared();
    lock.unlock_shared();
    const std::unique_lock guard(lock);
    CHECK(is_read);
    reader.await();
  });
}

TEST_CASE("fork(): fibers that wait for locks are not in the child") {
  run([] {
    std::mutex mutex;
    std::condition_variable condition;
    int woken = 0;
    mutex.lock();
    fiber<void> waiter = spin([&] {
      const std::lock_guard guard(mutex);
      ++woken;
    });
    fiber<void> sleeper = spin([&] {
      std::mutex other;
      std::unique_lock guard(other);
      condition.wait(guard, [&] { return woken > 0; });
      ++woken;
    });
    snooze();
    const pid_t child = ::fork();
    if (child == 0) {
      mutex.unlock();
      condition.notify_all();
      ::usleep(2'000);
      ::_exit(woken);
    }
    int status = -1;
    CHECK(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    mutex.unlock();
    waiter.await();
    condition.notify_all();
    sleeper.await();
    CHECK(woken == 2);
  });
}

TEST_CASE("pthread_mutex_lock() between fibers and threads") {
  std::mutex mutex;
  exclusion only;
  std::atomic<int> entries{0};
  const auto enter_often = [&](const std::function<void()>& pause) {
    for (int i = 0; i < 50; ++i) {
      const std::lock_guard guard(mutex);
      only.enter();
      pause();
      ++entries;
      only.leave();
    }
  };
  std::thread plain([&] { enter_often([] { std::this_thread::sleep_for(50us); }); });
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      run([&] {
        group fibers;
        for (int j = 0; j < 4; ++j) fibers.spin([&] { enter_often([] { ::usleep(50); }); });
        fibers.await_all();
      });
    });
  }
  plain.join();
  for (std::thread& thread : threads) thread.join();
  CHECK(only.held());
  CHECK(entries == 9 * 50);
}

TEST_CASE("pthread_rwlock_rdlock() lets readers in together, and a writer alone") {
  run([] {
    std::shared_mutex lock;
    int readers = 0;
    int most_readers = 0;
    bool writes = false;
    bool violated = false;
    group fibers;
    for (int i = 0; i < 5; ++i) {
      fibers.spin([&] {
        for (int j = 0; j < 5; ++j) {
          const std::shared_lock guard(lock);
          most_readers = std::max(most_readers, ++readers);
          violated = violated || writes;
          ::usleep(200);
          violated = violated || writes;
          --readers;
        }
      });
    }
    for (int i = 0; i < 2; ++i) {
      fibers.spin([&] {
        for (int j = 0; j < 5; ++j) {
          const std::unique_lock guard(lock);
          violated = violated || writes || readers > 0;
          writes = true;
          ::usleep(200);
          violated = violated || readers > 0;
          writes = false;
        }
      });
    }
    fibers.await_all();
    CHECK(!violated);
    CHECK(most_readers > 1);
  });
}

TEST_CASE("pthread_rwlock_clockwrlock() in a fiber keeps its limit, and knows its own lock") {
  run([] {
    pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    CHECK(::pthread_rwlock_wrlock(&lock) == 0);
    CHECK(::pthread_rwlock_wrlock(&lock) == EDEADLK);
    CHECK(::pthread_rwlock_rdlock(&lock) == EDEADLK);
    spin([&] {
      CHECK(::pthread_rwlock_tryrdlock(&lock) == EBUSY);
      CHECK(::pthread_rwlock_trywrlock(&lock) == EBUSY);
      timespec limit = testing::time_after(CLOCK_REALTIME, 5ms);
      CHECK(::pthread_rwlock_timedrdlock(&lock, &limit) == ETIMEDOUT);
      CHECK(::pthread_rwlock_timedwrlock(&lock, &limit) == ETIMEDOUT);
      limit = testing::time_after(CLOCK_MONOTONIC, 5ms);
      CHECK(::pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &limit) == ETIMEDOUT);
      CHECK(::pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &limit) == ETIMEDOUT);
    }).await();
    CHECK(::pthread_rwlock_unlock(&lock) == 0);
    CHECK(::pthread_rwlock_tryrdlock(&lock) == 0);
    CHECK(::pthread_rwlock_unlock(&lock) == 0);
  });
}

TEST_CASE("pthread_spin_lock() excludes the other fibers of the thread") {
  run([] {
    pthread_spinlock_t lock{};
    REQUIRE(::pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE) == 0);
    contend(5, [&] { ::pthread_spin_lock(&lock); }, [&] { ::pthread_spin_unlock(&lock); });
  });
}

TEST_CASE("pthread_cond_wait() waits for another fiber of the thread") {
  run([] {
    std::mutex mutex;
    std::condition_variable filled;
    std::deque<int> items;
    int sum = 0;
    group fibers;
    for (int i = 0; i < 3; ++i) {
      fibers.spin([&] {
        for (int j = 0; j < 20; ++j) {
          std::unique_lock lock(mutex);
          filled.wait(lock, [&] { return !items.empty(); });
          sum += items.front();
          items.pop_front();
        }
      });
    }
    const auto start = clock::now();
    for (int i = 1; i <= 60; ++i) {
      if (i % 7 == 0) snooze();
      const std::lock_guard guard(mutex);
      items.push_back(i);
      filled.notify_one();
    }
    fibers.await_all();
    CHECK(sum == 60 * 61 / 2);
    CHECK(clock::now() - start < 5s);
  });
}

TEST_CASE("pthread_cond_wait() waits for a thread without fibers, and that for a fiber") {
  std::mutex mutex;
  std::condition_variable turn;
  int next = 0;
  const auto play = [&](int parity) {
    for (int i = 0; i < 50; ++i) {
      std::unique_lock lock(mutex);
      turn.wait(lock, [&] { return next % 2 == parity; });
      ++next;
      turn.notify_all();
    }
  };
  std::thread plain([&] { play(1); });
  run([&] { spin([&] { play(0); }).await(); });
  plain.join();
  CHECK(next == 100);
}

TEST_CASE("pthread_cond_timedwait() in a fiber keeps its limit and its clock") {
  run([] {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    for (const clockid_t id : {CLOCK_REALTIME, CLOCK_MONOTONIC}) {
      pthread_condattr_t attributes{};
      pthread_cond_t condition{};
      ::pthread_condattr_init(&attributes);
      ::pthread_condattr_setclock(&attributes, id);
      REQUIRE(::pthread_cond_init(&condition, &attributes) == 0);
      CHECK(::pthread_mutex_lock(&mutex) == 0);
      const auto start = clock::now();
      timespec limit = testing::time_after(id, 70ms);
      int error = 0;
      while (error == 0) error = ::pthread_cond_timedwait(&condition, &mutex, &limit);
      CHECK(error == ETIMEDOUT);
      CHECK(clock::now() - start >= 70ms);
      CHECK(clock::now() - start < 2s);
      limit.tv_nsec = -1;
      CHECK(::pthread_cond_timedwait(&condition, &mutex, &limit) == EINVAL);
      CHECK(::pthread_mutex_trylock(&mutex) == EBUSY);
      CHECK(::pthread_mutex_unlock(&mutex) == 0);
      CHECK(::pthread_cond_destroy(&condition) == 0);
    }
    std::mutex other;
    std::condition_variable never;
    std::unique_lock lock(other);
    CHECK(!never.wait_for(lock, 5ms, [] { return false; }));
  });
}

TEST_CASE("pthread_mutex_lock() and pthread_cond_wait() under their names in C11") {
  run([] {
    mtx_t mutex{};
    cnd_t condition{};
    REQUIRE(::mtx_init(&mutex, mtx_timed) == thrd_success);
    REQUIRE(::cnd_init(&condition) == thrd_success);
    contend(
        5, [&] { REQUIRE(::mtx_lock(&mutex) == thrd_success); },
        [&] { REQUIRE(::mtx_unlock(&mutex) == thrd_success); });
    bool is_ready = false;
    fiber<void> waiter = spin([&] {
      CHECK(::mtx_lock(&mutex) == thrd_success);
      while (!is_ready) CHECK(::cnd_wait(&condition, &mutex) == thrd_success);
      CHECK(::mtx_unlock(&mutex) == thrd_success);
    });
    snooze();
    CHECK(::mtx_trylock(&mutex) == thrd_success);
    spin([&] {
      CHECK(::mtx_trylock(&mutex) == thrd_busy);
      const timespec limit = testing::time_after(CLOCK_REALTIME, 5ms);
      CHECK(::mtx_timedlock(&mutex, &limit) == thrd_timedout);
    }).await();
    is_ready = true;
    CHECK(::cnd_signal(&condition) == thrd_success);
    const timespec limit = testing::time_after(CLOCK_REALTIME, 5ms);
    int status = thrd_success;
    while (status == thrd_success) status = ::cnd_timedwait(&condition, &mutex, &limit);
    CHECK(status == thrd_timedout);
    CHECK(::cnd_broadcast(&condition) == thrd_success);
    CHECK(::mtx_unlock(&mutex) == thrd_success);
    waiter.await();
    ::cnd_destroy(&condition);
    ::mtx_destroy(&mutex);
  });
}

#if !defined(MOTET_TSAN)  // which blocks the thread
TEST_CASE("call_once() has the other fibers wait for the end of its function") {
  static once_flag flag = ONCE_FLAG_INIT;
  static int calls = 0;
  static bool is_done = false;
  run([] {
    group fibers;
    for (int i = 0; i < 5; ++i) {
      fibers.spin([] {
        ::call_once(&flag, [] {
          ++calls;
          ::usleep(2'000);
          is_done = true;
        });
        CHECK(is_done);
      });
    }
    fibers.await_all();
    CHECK(calls == 1);
  });
}
#endif

TEST_CASE("pthread_barrier_wait() of fibers of one thread") {
  run([] {
    pthread_barrier_t barrier{};
    REQUIRE(::pthread_barrier_init(&barrier, nullptr, 3) == 0);
    int arrived = 0;
    int serial = 0;
    group fibers;
    for (int i = 0; i < 3; ++i) {
      fibers.spin([&] {
        ++arrived;
        if (::pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) ++serial;
        CHECK(arrived == 3);
      });
    }
    fibers.await_all();
    CHECK(serial == 1);
    ::pthread_barrier_destroy(&barrier);
  });
}

TEST_CASE("pthread_mutex_lock() reports fibers that wait for each other") {
  std::timed_mutex first;
  std::timed_mutex second;
  run(with_notices(), [&] {
    const auto lock_both = [](std::timed_mutex& one, std::timed_mutex& other) {
      const std::lock_guard guard(one);
      ::usleep(2'000);
      if (other.try_lock_for(30ms)) other.unlock();
    };
    fiber<void> forth = spin({.name = "forth"}, [&] { lock_both(first, second); });
    fiber<void> back = spin({.name = "back"}, [&] { lock_both(second, first); });
    forth.await();
    back.await();
  });
  REQUIRE(notices.size() == 1);
  CHECK(noticed("deadlock: the lock's holder waits for this fiber"));
  CHECK(noticed("forth"));
  CHECK(noticed("back"));
  CHECK(noticed(" locked it at "));
}

TEST_CASE("pthread_mutex_lock() reports a fiber that waits for itself") {
  run(with_notices(), [] {
    std::timed_mutex mutex;
    const std::lock_guard guard(mutex);
    CHECK(!mutex.try_lock_for(10ms));
  });
  CHECK(noticed("deadlock: the lock's holder"));
}

TEST_CASE("pthread_mutex_lock() reports that posix::plain() blocks the thread") {
  run(with_notices(), [] {
    std::timed_mutex mutex;
    const std::lock_guard guard(mutex);
    spin([&] { posix::plain([&] { CHECK(!mutex.try_lock_for(10ms)); }); }).await();
  });
  CHECK(noticed("the thread blocks, because"));
}

TEST_CASE("pthread_mutex_lock() of many locks at once") {
  run([] {
    std::vector<std::mutex> mutexes(5'000);
    for (std::mutex& mutex : mutexes) mutex.lock();
    spin([&] {
      for (std::mutex& mutex : mutexes) CHECK(!mutex.try_lock());
    }).await();
    fiber<void> waiter = spin([&] {
      for (std::mutex& mutex : mutexes) mutex.lock();
      for (std::size_t i = mutexes.size(); i-- > 0;) mutexes[i].unlock();
    });
    snooze();
    for (std::mutex& mutex : mutexes) mutex.unlock();
    waiter.await();
    for (std::mutex& mutex : mutexes) {
      CHECK(mutex.try_lock());
      mutex.unlock();
    }
  });
}
