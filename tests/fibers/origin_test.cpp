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

TEST_CASE("origin() tells which fiber threw, where it was spun and by whom", "[origin]") {
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
    const exception_origin source = origin(error).value();
    CHECK(source.fiber == id);
    CHECK(source.name == "child");
    CHECK(std::string_view(source.site.file).find("origin_test.cpp") != std::string_view::npos);
    CHECK(source.site.line == line);
    CHECK(source.parent == parent.id());
    CHECK(source.parent_name == "parent");
    CHECK_THROWS_AS(std::rethrow_exception(error), oops);
  });
}

TEST_CASE("origin() has the number of a fiber that has no name", "[origin]") {
  run([] {
    auto fails = spin([] { throw 5; });
    const auto error = thrown_by([&] { fails.await(); });
    const exception_origin source = origin(error).value();
    CHECK(source.fiber == fails.id());
    CHECK(source.name.empty());
    CHECK(source.parent == current().id());
    CHECK(source.parent_name.empty());
  });
}

TEST_CASE("origin() names the innermost fiber that an exception passed through", "[origin]") {
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

TEST_CASE("origin() stays the same as a failure propagates to parents", "[origin]") {
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

TEST_CASE("origin() is kept by the failure that a group rethrows", "[origin]") {
  run([] {
    group voices;
    voices.spin({.name = "alto"}, [] { sleep(); });
    voices.spin({.name = "tenor"}, [] { throw oops(); });
    const auto error = thrown_by([&] { voices.await_all(); });
    CHECK(name_of(error) == "tenor");
    CHECK(origin(error)->parent == current().id());
  });
}

TEST_CASE("origin() differs for another exception thrown on the way", "[origin]") {
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

TEST_CASE("origin() is empty for an exception that has left no fiber", "[origin]") {
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

TEST_CASE("origin() of a raised exception is the fiber that it ended", "[origin]") {
  run([] {
    auto target = spin({.name = "target"}, [] { sleep(); });
    target.raise(oops());
    CHECK(name_of(thrown_by([&] { target.await(); })) == "target");
  });
}

TEST_CASE("origin() is empty for a cancellation; awaiting the cancelled fiber throws a new one",
          "[origin]") {
  run([] {
    auto victim = spin({.name = "ended"}, [] { sleep(); });
    victim.cancel();
    const auto error = thrown_by([&] {
      spin({.name = "awaiter"}, [&] {
        CHECK(!origin(thrown_by([&] { victim.await(); })));
      }).await();
      spin({.name = "awaiter"}, [&] { victim.await(); }).await();
    });
    CHECK(name_of(error) == "awaiter");
  });
}

TEST_CASE("origin() outlives the fiber, its runtime and its thread", "[origin]") {
  std::exception_ptr error;
  std::thread([&] { run([&] { error = failure_of(std::string(100, 'x')); }); }).join();
  CHECK(name_of(error) == std::string(100, 'x'));
  std::thread([&] { CHECK(name_of(error).size() == 100); }).join();
}

TEST_CASE("origin() goes with its exception; a new one at the same address has none", "[origin]") {
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

TEST_CASE("origin(): the exception's own destructor is called once", "[origin]") {
  struct tracked : std::exception {
    explicit tracked(int& counter) : alive(&counter) { ++*alive; }
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

TEST_CASE("origin(): an exception's destructor may destroy and record others", "[origin]") {
  struct busy {
    std::exception_ptr inner;
    bool* has_origin;
    ~busy() {
      if (inner != nullptr && origin(inner)) *has_origin = true;
      inner = nullptr;
      const auto error = failure_of("in a destructor");
      *has_origin = *has_origin && origin(error);
    }
  };
  run([] {
    bool has_origin = false;
    const auto error = failure_of("other");
    std::exception_ptr outer = thrown_by([&] {
      spin([&] {
        const auto separate = failure_of("held");
        throw busy{separate, &has_origin};
      }).await();
    });
    CHECK(origin(outer));
    has_origin = false;
    outer = nullptr;
    CHECK(has_origin);
    CHECK(name_of(error) == "other");
  });
}

TEST_CASE("origin(): threads record, read and drop origins concurrently", "[origin][threads]") {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  const auto common = std::make_exception_ptr(oops());
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
          also.raise(common);
          if (thrown_by([&] { also.await(); }) != common || !origin(common)) ++wrong;
        }
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("origin() works in a forked child, whatever other threads did", "[origin][fork]") {
  if (testing::under_tsan) return;  // it knows no threads in a child of many
  std::atomic<bool> stop_requested{false};
  std::thread busy([&] {
    run([&] {
      while (!stop_requested) failure_of("busy");
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
  stop_requested = true;
  busy.join();
}

TEST_CASE("options::on_unhandled receives an exception with its origin()", "[origin]") {
  std::optional<exception_origin> source;
  options config;
  config.on_unhandled = [&](const std::exception_ptr& error) { source = origin(error); };
  CHECK_THROWS_AS(run(config,
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
  CHECK(source.value().name == "unheard");
}
