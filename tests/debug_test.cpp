// SPDX-License-Identifier: MIT
// What a person is told about a thread: the dump, and the report when all its fibers wait.
#include <chrono>
#include <memory>
#include <motet/debug.hpp>
#include <motet/motet.hpp>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;

namespace {

std::string dumped() {
  std::ostringstream out;
  dump(out);
  return out.str();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a dump tells of each fiber what it waits for and where it was spun", "[debug]") {
  run([] {
    const auto pair = testing::make_socket_pair();
    group several;
    std::byte one{};
    several.spin({.name = "reader"}, [&] { io::recv(pair.first(), {&one, 1}); });
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

TEST_CASE("with other threads alive a thread whose fibers all wait says so once, and waits on",
          "[debug]") {
  if (testing::on_sim()) return;  // virtual time would not wait for the other thread
  std::mutex lock;
  std::vector<std::string> notices;
  options chosen;
  chosen.deadlock_report = 5ms;
  chosen.on_notice = [&](std::string_view line) {
    const std::lock_guard guard(lock);
    notices.emplace_back(line);
  };
  const int got = run(chosen, [] {
    return suspend_with<int>([](resumer<int> resume) {
      std::thread([resume = std::move(resume)]() mutable {
        std::this_thread::sleep_for(20ms);
        resume(3);
      }).detach();
    });
  });
  CHECK(got == 3);
  REQUIRE(notices.size() == 1);
  CHECK(contains(notices[0], "suspend_with"));
}
