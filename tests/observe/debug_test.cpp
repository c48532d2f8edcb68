// SPDX-License-Identifier: MIT
// What a person is told about a thread: the dump, and the report when all its fibers wait.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <locale>
#include <memory>
#include <motet/motet.hpp>
#include <motet/observe/debug.hpp>
#include <mutex>
#include <regex>
#include <shared_mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "quiet.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;

namespace {

std::string dumped() {
  std::ostringstream stream;
  dump(stream);
  return stream.str();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct thousands : std::numpunct<char> {
  std::string do_grouping() const override { return "\3"; }
};

/// Returns: the dump if it does not say `part`; nothing if it does.
std::string dumped_without(const std::string& part) {
  const std::string text = dumped();
  return contains(text, part) ? "" : text;
}

std::string label(const fiber_ref& fiber, const std::string& name) {
  return "fiber " + std::to_string(fiber.id()) + " \"" + name + '"';
}

}  // namespace

TEST_CASE("dump(): a tree has children under their parents, in groups or not", "[debug]") {
  run([] {
    group outer;
    const auto parent = outer.spin({.name = "parent"}, [] {
      group inner;
      inner.spin({.name = "in a group"}, [] { suspend(); });
      spin({.name = "child"}, [] {
        spin({.name = "grandchild"}, [] { suspend(); });
        suspend();
      });
      suspend();
    });
    spin({.name = "cousin"}, [] { suspend(); });
    for (int i = 0; i < 5; ++i) snooze();
    std::ostringstream stream;
    dump(stream, {.tree = true});
    std::string names;
    for (std::istringstream lines(stream.str()); std::getline(lines, names);) {
      const std::size_t depth = names.find_first_not_of(' ') / 2;
      if (contains(names, "\"parent\"") || contains(names, "\"cousin\"")) CHECK(depth == 1);
      if (contains(names, "\"in a group\"") || contains(names, "\"child\"")) CHECK(depth == 2);
      if (contains(names, "\"grandchild\"")) CHECK(depth == 3);
    }
    const std::string text = stream.str();
    CHECK(std::count(text.begin(), text.end(), '\n') == 6);
    CHECK(text.find("\"parent\"") < text.find("\"in a group\""));
    CHECK(text.find("\"child\"") < text.find("\"grandchild\""));
  });
}

TEST_CASE("dump() shows for each fiber what it waits for and where it was spun", "[debug]") {
  run([] {
    const auto pair = testing::make_socket_pair();
    group several;
    std::byte byte{};
    several.spin({.name = "reader"}, [&] { io::recv(pair.first(), {&byte, 1}); });
    several.spin({.name = "sleeper"}, [] { sleep_for(1h); });
    auto idle = several.spin({.name = "suspended"}, [] { suspend(); });
    several.spin([idle_ref = fiber_ref(idle)] { idle_ref.await(); });
    snooze();
    several.spin({.name = "newcomer"}, [] {});
    const std::string text = dumped();
    INFO(text);
    CHECK(contains(text, "running"));
    CHECK(contains(text, "\"reader\" waiting: recv " + std::to_string(pair.first())));
    CHECK(contains(text, "\"sleeper\" waiting: sleep"));
    CHECK(contains(text, "\"suspended\" waiting: suspend"));
    CHECK(contains(text, "waiting: await of fiber " + std::to_string(idle.id())));
    CHECK(contains(text, "\"newcomer\" runnable"));
    CHECK(contains(text, "debug_test.cpp:"));
    CHECK(contains(text, " ms"));
    several.cancel();
    several.await_all();
    CHECK(!contains(dumped(), "sleeper"));
  });
  CHECK(dumped().empty());
}

TEST_CASE("fiber::set_name() renames a fiber on its own thread", "[debug]") {
  run([] {
    const auto fiber = spin({.name = "idle"}, [] {
      current().set_name("GET /x");
      sleep();
    });
    CHECK(fiber.name() == "idle");
    snooze();
    CHECK(fiber.name() == "GET /x");
    CHECK(dumped_without("\"GET /x\" waiting: sleep") == "");
    std::string name;
    bool refused = false;
    std::thread([&] {
      name = fiber.name();
      try {
        fiber.set_name("mine");
      } catch (const std::logic_error&) {
        refused = true;
      }
    }).join();
    CHECK(name == "GET /x");
    CHECK(refused);
    fiber.set_name("");
    CHECK(fiber.name().empty());
    CHECK(!contains(dumped(), "GET /x"));
    fiber.set_name("a name too long for a small string, so that it is somewhere else");
    fiber.cancel();
    CHECK_THROWS_AS(fiber.await(), fiber_cancelled);
    fiber.set_name("late");
    CHECK(fiber.name() == "a name too long for a small string, so that it is somewhere else");
  });
}

TEST_CASE("fiber::name() can be read on any thread while fibers are renamed", "[debug]") {
  run(testing::quiet(), [] {
    std::atomic<bool> stop{false};
    const auto fiber = spin({.name = "first"}, [&] {
      for (int round = 0; round < 1'000; ++round) {
        current().set_name("round " + std::to_string(round) + " of many, somewhere on the heap");
        snooze();
      }
    });
    bool always_named = true;
    std::thread reader([&] {
      while (!stop) always_named = always_named && !fiber.name().empty();
    });
    fiber.await();
    stop = true;
    reader.join();
    CHECK(always_named);
  });
}

TEST_CASE("dump() shows which fiber another one awaits", "[debug]") {
  run([] {
    group several;
    const auto idle = several.spin({.name = "idle"}, [] { sleep(); });
    const auto unnamed = several.spin([] { sleep(); });
    several.spin({.name = "awaiting"}, [&] { idle.await(); });
    several.spin({.name = "awaiting too"}, [&] { unnamed.await(); });
    for (int i = 0; i < 3; ++i) snooze();
    CHECK(dumped_without("\"awaiting\" waiting: await of " + label(idle, "idle") + ", for ") == "");
    CHECK(dumped_without("\"awaiting too\" waiting: await of fiber " +
                         std::to_string(unnamed.id()) + ", for ") == "");
    several.cancel();
  });
}

TEST_CASE("dump() shows which fiber of another thread is awaited", "[debug]") {
  run([] {
    std::promise<fiber_ref> handle;
    std::thread remote([&] {
      run([&] {
        const auto target = spin({.name = "asked"}, [] { suspend<int>(); });
        handle.set_value(target);
        try {
          target.await();
        } catch (const fiber_cancelled&) {
        }
      });
    });
    const fiber_ref target = handle.get_future().get();
    const auto awaiting = spin([&] { target.await(); });
    snooze();
    CHECK(dumped_without("waiting: await of distant " + label(target, "asked") + ", for ") == "");
    std::ostringstream grouping;
    grouping.imbue(std::locale(std::locale::classic(), new thousands));
    grouping << std::hex << std::showbase;
    dump(grouping, {.json = true});
    CHECK(contains(grouping.str(), "\"for_fiber\": " + std::to_string(target.id())));
    target.cancel();
    CHECK_THROWS_AS(awaiting.await(), fiber_cancelled);
    remote.join();
  });
}

TEST_CASE("dump() shows which fiber has the turn that another one waits for", "[debug]") {
  run([] {
    net::tcp_listener listener(net::endpoint::loopback(0));
    const auto client = net::tcp_stream::connect(listener.local_endpoint());
    auto server = listener.accept();
    std::byte byte{};
    group several;
    std::vector<fiber<void>> readers;
    for (const char* name : {"first", "second", "third"}) {
      readers.push_back(several.spin({.name = name}, [&] { server.read({&byte, 1}); }));
    }
    snooze();
    const std::string held_up = ", held up by ";
    CHECK(dumped_without("\"second\" waiting: turn to read on fd ") == "");
    CHECK(dumped_without(held_up + label(readers[0], "first")) == "");
    readers[0].cancel();
    CHECK_THROWS_AS(readers[0].await(), fiber_cancelled);
    CHECK(dumped_without(held_up + label(readers[0], "first")) != "");
    CHECK(dumped_without(held_up + label(readers[1], "second")) == "");
    several.cancel();
  });
}

TEST_CASE("dump() shows which lock is awaited and which fiber holds it", "[debug]") {
  run([] {
    mutex lock;
    local::shared_mutex rwlock;
    std::ostringstream address;
    address << static_cast<const void*>(&lock);
    group several;
    const auto holder = several.spin({.name = "holder"}, [&] {
      const std::lock_guard guard(lock);
      sleep();
    });
    several.spin([&] {
      const std::lock_guard guard(rwlock);
      sleep();
    });
    snooze();
    for (const char* name : {"first", "second"}) {
      several.spin({.name = name}, [&] { const std::lock_guard guard(lock); });
    }
    several.spin({.name = "reader"}, [&] { const std::shared_lock guard(rwlock); });
    snooze();
    const std::string waits = " waiting: lock of a mutex " + address.str() + ", held by ";
    CHECK(dumped_without("\"second\"" + waits + label(holder, "holder") + ", for ") == "");
    CHECK(dumped_without("lock_shared of a mutex 0x") == "");
    holder.cancel();
    several.cancel();
  });
}

TEST_CASE("dump() shows that the holder of a lock has ended, or is on another thread", "[debug]") {
  run(testing::quiet(), [] {
    mutex held_lock, remote_lock, own_lock;
    const std::uint64_t ended_number = spin([&] {
                                         held_lock.lock();
                                         return current().id();
                                       }).await();
    std::promise<void> acquired, requested;
    std::thread remote([&] {
      const std::lock_guard guard(remote_lock);
      acquired.set_value();
      requested.get_future().wait();
    });
    acquired.get_future().wait();
    own_lock.lock();
    group several;
    for (mutex* lock : {&held_lock, &remote_lock, &own_lock}) {
      several.spin([lock] { const std::lock_guard guard(*lock); });
    }
    snooze();
    const std::string text = dumped();
    INFO(text);
    CHECK(contains(text,
                   ", held by fiber " + std::to_string(ended_number) + ", which has ended, for "));
    CHECK(contains(text, ", held by another thread, for "));
    CHECK(contains(text, ", held by the main fiber, for "));
    own_lock.unlock();
    several.cancel();
    requested.set_value();
    remote.join();
  });
}

TEST_CASE("dump() names the children that a parent waits for", "[debug]") {
  run([] {
    const auto pair = testing::make_socket_pair();
    group several;
    std::vector<std::string> daughters;
    several.spin({.name = "parent"}, [&] {
      group members;
      members.spin({.name = "son", .transient = true}, [] { sleep(); });
      for (int i = 0; i < 5; ++i) {
        daughters.push_back(label(members.spin({.name = "daughter"}, [] { sleep(); }), "daughter"));
      }
      members.await_all();
    });
    const auto ending = several.spin({.name = "ending"}, [&] {
      spin({.name = "late"}, [&] {
        try {
          sleep();
        } catch (const cancelled&) {
          std::byte byte{};
          io::recv(pair.first(), {&byte, 1});
        }
      });
      snooze();
    });
    for (int i = 0; i < 4; ++i) snooze();
    REQUIRE(daughters.size() == 5);
    CHECK(dumped_without("\"parent\" waiting: its children: " + daughters[0] + ", " + daughters[1] +
                         ", " + daughters[2] + ", " + daughters[3] + ", and others, for ") == "");
    const std::regex late("\"ending\" waiting: its children: fiber [0-9]+ \"late\", for ");
    CHECK(std::regex_search(dumped(), late));
    const std::byte byte{};
    io::send(pair.second(), {&byte, 1});
    ending.await();
    several.cancel();
  });
}

TEST_CASE("options::on_notice reports once that all fibers of one of several threads wait",
          "[debug]") {
  std::mutex lock;
  std::vector<std::string> notices;
  options config;
  config.deadlock_report = 5ms;
  config.on_notice = [&](std::string_view line) {
    const std::lock_guard guard(lock);
    notices.emplace_back(line);
  };
  const auto reported = [&] {
    const std::lock_guard guard(lock);
    return !notices.empty();
  };
  const int value = run(config, [&] {
    return suspend_with<int>([&](resumer<int> resume) {
      std::thread([&, resume = std::move(resume)]() mutable {
        for (int waited = 0; waited < 5'000 && !reported(); ++waited) {
          std::this_thread::sleep_for(1ms);
        }
        const int result = reported() ? 3 : 0;  // while it still waits
        std::this_thread::sleep_for(20ms);      // it must not say so again
        resume(result);
      }).detach();
    });
  });
  CHECK(value == 3);
  REQUIRE(notices.size() == 1);
  CHECK(contains(notices[0], "suspend_with"));
}
