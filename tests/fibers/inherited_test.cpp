// SPDX-License-Identifier: MIT
// What a fiber inherits, on whatever way it comes to be.
#include <atomic>
#include <motet/motet.hpp>
#include <stdexcept>
#include <string>

#include "catch.hpp"
#include "quiet.hpp"

using namespace motet;
using testing::run_here;

namespace {

const fiber_local<std::string> request(inherited, "none");

struct counted {
  counted() = default;
  counted(const counted&) {
    if (throws) throw std::runtime_error("no copy");
    ++copies;
    copied_by = current();
  }
  static inline bool throws = false;
  static inline std::atomic<int> copies{0};
  static inline fiber_ref copied_by;
};

}  // namespace

TEST_CASE("inherited fiber_local: a value follows a request on every way to another thread",
          "[fiber_local][inherited][thread]") {
  run_here([] {
    *request = "GET /";
    thread worker([] { sleep(); });
    CHECK(worker.spin([] { return *request; }).await() == "GET /");
    CHECK(worker.call([] { return *request; }) == "GET /");
    promise<std::string> posted;
    worker.post([&] { posted.set_value(*request); });
    CHECK(posted.get_future().get() == "GET /");
    promise<std::string> in_thread;
    thread third([&] { in_thread.set_value(*request); });
    CHECK(in_thread.get_future().get() == "GET /");

    thread_pool pool(2);
    CHECK(pool.submit([] { return *request; }).get() == "GET /");
    promise<std::string> in_pool;
    pool.post([&] { in_pool.set_value(*request); });
    CHECK(in_pool.get_future().get() == "GET /");
    strand serial(pool);
    promise<std::string> in_strand;
    serial.post([&] { in_strand.set_value(*request); });
    CHECK(in_strand.get_future().get() == "GET /");
    // And on from there.
    const auto further = [&worker] { return worker.call([] { return *request; }); };
    CHECK(pool.submit(further).get() == "GET /");
  });
}

TEST_CASE("inherited fiber_local: each remote fiber has its own copy, made by the caller",
          "[fiber_local][inherited][thread]") {
  run_here([] {
    *request = "first";
    thread worker([] { sleep(); });
    const auto remote_change = worker.spin([] {
      *request += ", changed";
      return *request;
    });
    *request = "second";
    CHECK(remote_change.await() == "first, changed");
    CHECK(*request == "second");
    // A fiber of the house that calls small functions hands nothing on to the next one.
    promise<std::string> message;
    worker.post([] { *request = "of the first function"; });
    worker.post([&] { message.set_value(*request); });
    CHECK(message.get_future().get() == "second");
  });
}

TEST_CASE("inherited fiber_local: a copy that throws makes the call throw before it has an effect",
          "[fiber_local][inherited][thread]") {
  const fiber_local<counted> value(inherited);
  run_here([&] {
    *value;
    thread worker([] { sleep(); });
    thread_pool pool(1);
    bool ran = false;
    const auto run_it = [&] { ran = true; };
    counted::copies = 0;
    worker.call([] {});
    CHECK(counted::copies == 1);
    CHECK(counted::copied_by == current());
    counted::throws = true;
    CHECK_THROWS_AS(worker.spin(run_it), std::runtime_error);
    CHECK_THROWS_AS(worker.call(run_it), std::runtime_error);
    CHECK_THROWS_AS(worker.post(run_it), std::runtime_error);
    CHECK_THROWS_AS(pool.submit(run_it), std::runtime_error);
    CHECK_THROWS_AS(pool.post(run_it), std::runtime_error);
    counted::throws = false;
    CHECK(pool.stats()[0].pending == 0);
    pool.drain();
    CHECK_FALSE(ran);
    counted::copied_by = {};
  });
}
