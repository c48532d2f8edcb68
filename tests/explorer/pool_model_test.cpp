// SPDX-License-Identifier: MIT
// Workers of a pool that rest and are woken, and how the end of the last job is noticed:
// threads/job_inbox.cpp, threads/pool_state.cpp.
#include <chrono>
#include <motet/motet.hpp>

#include "explorer/explore.hpp"
#include "explorer/model_test.hpp"
#include "explorer/runtime.hpp"

using namespace explorer;

TEST_CASE("thread_pool: a job that is given to a resting worker is run", "[explorer]") {
  const auto model = [](world& all) {
    plain<int> result(0);
    add_runtime(all, [&] {
      motet::thread_pool pool(1);
      pool.submit([&] { result.set(1); }).get();
      check(result.get() == 1, "the job has not run");
    });
    all.run();
  };
  check_model("one job, one worker", bounded_runtime(1), model,
              {{kind::torn, "mailbox.cpp:announce"},
               {kind::torn, "sharing.hpp:lock"},
               {kind::relaxed, "sharing.hpp:unlock"}});
}

TEST_CASE("thread_pool::drain() notices the end of the last job", "[explorer]") {
  const auto model = [](world& all) {
    plain<int> result(0);
    add_runtime(all, [&] {
      motet::thread_pool pool(1);
      pool.post([&] { result.set(1); });
      pool.drain();
      check(result.get() == 1, "the job has not run");
    });
    all.run();
  };
  check_model("a pool that is drained", bounded_runtime(1), model,
              {{kind::blind, "announce_idle"}, {kind::relaxed, "begin_rest"}});
}

TEST_CASE("thread_pool: a job behind a busy worker is run by one that rests", "[explorer]") {
  const auto model = [](world& all) {
    add_runtime(all, [&] {
      motet::detail::atomic<bool> over(false);
      motet::thread_pool pool(2);
      pool.post([] {});
      pool.post([&] {
        while (!over.load()) motet::detail::pause();  // as one that computes
      });
      pool.post([&] { over.store(true); });
      pool.drain();
    });
    all.run();
  };
  mutations mistakes{{kind::torn, "sharing.hpp:lock"}, {kind::relaxed, "sharing.hpp:unlock"}};
  // Found after some 100,000 executions.
  if (testing::scaled(1, 0) > 0) mistakes.push_back({kind::relaxed, "rouse_another"});
  check_model("three jobs, two workers", bounded_runtime(0), model, mistakes);
}

/// The first job teaches its worker that to wait awake is worthwhile. So it may be searching when
/// the others are submitted, of which each needs a worker of its own.
TEST_CASE("thread_pool: a worker that searches wakes the one that rests", "[explorer]") {
  const auto model = [](world& all) {
    motet::options settings = still_options();
    settings.busy_wait = std::chrono::microseconds(100);
    add_runtime(
        all,
        [&] {
          motet::detail::atomic<bool> over(false);
          motet::thread_pool pool(2);
          pool.submit([] {}).get();
          pool.post([&] {
            while (!over.load()) motet::detail::pause();  // as one that computes
          });
          pool.post([&] { over.store(true); });
          pool.drain();
        },
        settings);
    all.run();
  };
  limits most = bounded_runtime(0);
  most.preemptions = 0;  // in full, too: a wait awake has hundreds of steps
  most.pauses = 600;
  most.steps = 10'000;
  check_model("a job, and two at once", most, model,
              {{kind::blind, "queue"}, {kind::torn, "sharing.hpp:lock"}});
}
