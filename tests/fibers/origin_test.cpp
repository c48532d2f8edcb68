// SPDX-License-Identifier: MIT
// In which fiber an exception was thrown.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <motet/fibers/origin.hpp>
#include <motet/motet.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "support.hpp"

using namespace motet;
using testing::oops;

namespace {

/// What leaves `f`; null: nothing.
template <typename F>
std::exception_ptr thrown_by(F f) {
  try {
    f();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

/// Fails as one of a fiber does, on its own.
std::exception_ptr failure_of(const std::string& name) {
  return thrown_by([&] { spin({.name = name}, [] { throw oops(); }).await(); });
}

std::string name_of(const std::exception_ptr& error) {
  return origin(error).value().name;
}

}  // namespace

TEST_CASE("an exception tells in which fiber it was thrown, where that was spun and by whom",
          "[origin]") {
  run([] {
    std::exception_ptr error;
    std::uint64_t id = 0;
    unsigned line = 0;
    auto parent = spin({.name = "parent"}, [&] {
      line = __LINE__ + 1;
      auto child = spin({.name = "child"}, [] { throw oops(); });
      id = child.id();
      error = thrown_by([&] { child.await(); });
    });
    parent.await();
    REQUIRE(error != nullptr);
    const exception_origin from = origin(error).value();
    CHECK(from.fiber == id);
    CHECK(from.name == "child");
    CHECK(std::string_view(from.site.file).find("origin_test.cpp") != std::string_view::npos);
    CHECK(from.site.line == line);
    CHECK(from.parent == parent.id());
    CHECK(from.parent_name == "parent");
    CHECK_THROWS_AS(std::rethrow_exception(error), oops);
  });
}

TEST_CASE("a fiber without a name, of the main fiber, has its number", "[origin]") {
  run([] {
    auto fails = spin([] { throw 5; });
    const auto error = thrown_by([&] { fails.await(); });
    const exception_origin from = origin(error).value();
    CHECK(from.fiber == fails.id());
    CHECK(from.name.empty());
    CHECK(from.parent == current().id());
    CHECK(from.parent_name.empty());
  });
}

TEST_CASE("an exception that goes through several fibers comes from the innermost", "[origin]") {
  run([] {
    const auto error = thrown_by([] {
      spin({.name = "outer"}, [] {
        spin({.name = "middle"}, [] {
          spin({.name = "inner"}, [] { throw oops(); }).await();
        }).await();
      }).await();
    });
    CHECK(name_of(error) == "inner");
  });
}

TEST_CASE("a failure that climbs to parents keeps its origin", "[origin]") {
  run([] {
    const auto error = thrown_by([] {
      spin({.name = "parent"}, [] {
        spin({.name = "child"}, [] { throw oops(); });
        sleep();
      }).await();
    });
    CHECK(name_of(error) == "child");
    const auto climbed = thrown_by([] {
      spin({.name = "parent"}, [] {
        spin({.name = "late"}, [] {
          try {
            sleep();
          } catch (const cancelled&) {
            throw oops();
          }
        });
        snooze();
      }).await();
    });
    CHECK(name_of(climbed) == "late");
  });
}

TEST_CASE("the failure that a group rethrows has its origin", "[origin]") {
  run([] {
    group voices;
    voices.spin({.name = "alto"}, [] { sleep(); });
    voices.spin({.name = "tenor"}, [] { throw oops(); });
    const auto error = thrown_by([&] { voices.await_all(); });
    CHECK(name_of(error) == "tenor");
    CHECK(origin(error)->parent == current().id());
  });
}

TEST_CASE("another exception thrown on the way has an origin of its own", "[origin]") {
  run([] {
    const auto error = thrown_by([] {
      spin({.name = "outer"}, [] {
        try {
          spin({.name = "inner"}, [] { throw oops(); }).await();
        } catch (const oops&) {
          std::throw_with_nested(std::logic_error("wrapped"));
        }
      }).await();
    });
    CHECK(name_of(error) == "outer");
    try {
      std::rethrow_exception(error);
    } catch (const std::nested_exception& wrapper) {
      CHECK(name_of(wrapper.nested_ptr()) == "inner");
    }
  });
}

TEST_CASE("an exception that has left no fiber's body has no origin", "[origin]") {
  CHECK(!origin(nullptr));
  CHECK(!origin(std::make_exception_ptr(oops())));
  run([] {
    CHECK(!origin(thrown_by([] { throw oops(); })));
    spin([] { CHECK(!origin(thrown_by([] { throw oops(); }))); }).await();
    auto raised_in = spin([] { CHECK_THROWS_AS(sleep(), oops); });
    snooze();
    const auto error = std::make_exception_ptr(oops());
    raised_in.raise(error);
    raised_in.await();
    CHECK(!origin(error));
  });
  CHECK(!origin(thrown_by([] { run([] { throw oops(); }); })));
}

TEST_CASE("an exception that was raised comes from the fiber that it ended", "[origin]") {
  run([] {
    auto target = spin({.name = "target"}, [] { sleep(); });
    target.raise(oops());
    CHECK(name_of(thrown_by([&] { target.await(); })) == "target");
  });
}

TEST_CASE("a cancellation has no origin; what awaiting the cancelled one throws is new",
          "[origin]") {
  run([] {
    auto ended = spin({.name = "ended"}, [] { sleep(); });
    ended.cancel();
    const auto error = thrown_by([&] {
      spin({.name = "awaiter"}, [&] { CHECK(!origin(thrown_by([&] { ended.await(); }))); }).await();
      spin({.name = "awaiter"}, [&] { ended.await(); }).await();
    });
    CHECK(name_of(error) == "awaiter");
  });
}

TEST_CASE("an origin stays when the fiber, its runtime and its thread have ended", "[origin]") {
  std::exception_ptr error;
  std::thread([&] { run([&] { error = failure_of(std::string(100, 'x')); }); }).join();
  CHECK(name_of(error) == std::string(100, 'x'));
  std::thread([&] { CHECK(name_of(error).size() == 100); }).join();
}

TEST_CASE("an origin goes with its exception, and the next one in its place has none", "[origin]") {
  run([] {
    const int rounds = static_cast<int>(testing::scaled(10'000, 500));
    bool wrong = false;
    for (int i = 0; i < rounds; ++i) {
      std::exception_ptr error = failure_of("worker");
      wrong = wrong || !origin(error);
      const std::exception_ptr copy = std::exchange(error, nullptr);
      wrong = wrong || !origin(copy);
    }
    CHECK(!wrong);
    for (int i = 0; i < rounds; ++i) {
      failure_of("worker");
      wrong = wrong || origin(thrown_by([] { throw oops(); }));
    }
    CHECK(!wrong);
  });
}

TEST_CASE("an exception's own destructor is called, once", "[origin]") {
  struct tracked : std::exception {
    explicit tracked(int& of) : alive(&of) { ++*alive; }
    tracked(const tracked& other) noexcept : std::exception(other), alive(other.alive) { ++*alive; }
    tracked& operator=(const tracked&) = delete;
    ~tracked() override { --*alive; }
    int* alive;
  };
  int alive = 0;
  run([&] {
    std::exception_ptr error = thrown_by([&] { spin([&] { throw tracked(alive); }).await(); });
    CHECK(alive == 1);
    CHECK(origin(error));
    error = nullptr;
    CHECK(alive == 0);
    CHECK_THROWS_AS(spin([&] { throw tracked(alive); }).await(), tracked);
    CHECK(alive == 0);
  });
}

TEST_CASE("the destructor of an exception may throw away, and note, others", "[origin]") {
  struct busy {
    std::exception_ptr other;
    bool* found;
    ~busy() {
      if (other != nullptr && origin(other)) *found = true;
      other = nullptr;
      const auto error = failure_of("in a destructor");
      *found = *found && origin(error);
    }
  };
  run([] {
    bool found = false;
    const auto error = failure_of("other");
    std::exception_ptr outer = thrown_by([&] {
      spin([&] {
        const auto own = failure_of("held");
        throw busy{own, &found};
      }).await();
    });
    CHECK(origin(outer));
    found = false;
    outer = nullptr;
    CHECK(found);
    CHECK(name_of(error) == "other");
  });
}

TEST_CASE("threads note, ask for and forget origins at once", "[origin][threads]") {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  const auto shared = std::make_exception_ptr(oops());
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      run([&] {
        const std::string name = "worker " + std::to_string(t);
        for (int i = 0; i < 200; ++i) {
          std::exception_ptr error = failure_of(name);
          if (name_of(error) != name) ++wrong;
          std::thread([last = std::exchange(error, nullptr), &name, &wrong] {
            if (name_of(last) != name) ++wrong;
          }).join();
          auto also = spin({.name = name}, [] { sleep(); });
          also.raise(shared);
          if (thrown_by([&] { also.await(); }) != shared || !origin(shared)) ++wrong;
        }
      });
    });
  }
  for (std::thread& each : threads) each.join();
  CHECK(wrong == 0);
}

TEST_CASE(
    "a forked child has the origins of its parent, and notes more, whatever other threads did",
    "[origin][fork]") {
  if (testing::under_tsan) return;  // it knows no threads in a child of many
  std::atomic<bool> over{false};
  std::thread busy([&] {
    run([&] {
      while (!over) failure_of("busy");
    });
  });
  run([&] {
    const auto error = failure_of("before");
    for (int i = 0; i < 20; ++i) {
      const pid_t child = ::fork();
      REQUIRE(child >= 0);
      if (child == 0) {
        ::alarm(20);
        ::_exit(name_of(error) == "before" && name_of(failure_of("after")) == "after" ? 0 : 1);
      }
      int status = 0;
      ::waitpid(child, &status, 0);
      CHECK(status == 0);
    }
  });
  over = true;
  busy.join();
}

TEST_CASE("on_unhandled is given an exception with its origin", "[origin]") {
  std::optional<exception_origin> from;
  options chosen;
  chosen.on_unhandled = [&](const std::exception_ptr& error) { from = origin(error); };
  CHECK_THROWS_AS(run(chosen,
                      [] {
                        spin({.name = "unheard"}, [] {
                          try {
                            sleep();
                          } catch (const cancelled&) {
                            throw oops();
                          }
                        });
                        snooze();
                        throw std::logic_error("main's own");
                      }),
                  std::logic_error);
  CHECK(from.value().name == "unheard");
}
