// SPDX-License-Identifier: MIT
// When all threads for offloaded calls are blocked: motet's own calls go on, and a notice says who
// blocks them.

#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <motet/motet.hpp>
#include <motet/observe/debug.hpp>
#include <motet/observe/stats.hpp>
#include <motet/threads/offload.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "catch.hpp"
#include "platform/workers.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::contains;
using testing::limited_to;
using testing::make_pipe;

namespace {

/// Blocks its thread until a byte comes, which it leaves.
void block_on(int pipe) {
  pollfd poll_entry{pipe, POLLIN, 0};
  ::poll(&poll_entry, 1, 20'000);
}

template <typename F>
bool within(std::chrono::seconds limit, F f) {
  return move_on_after(limit, f);
}

/// What motet makes by itself on other threads.
void use_files_and_programs() {
  CHECK(within(10s, [] {
    directory names("/proc/self");
    while (names.next()) {
    }
  }));
  CHECK(within(10s, [] {
    file status = file::open("/proc/self/stat");
    std::array<std::byte, 64> room;
    CHECK(status.read(room) > 0);
  }));
  CHECK(within(10s, [] { CHECK(run_command({.program = "true"}).status); }));
}

/// Calls `f` with a group for its calls, and the notices so far, while two calls block both
/// threads. Returns: the notices.
template <typename F>
std::vector<std::string> notices_while_both_are_blocked(F f) {
  const limited_to two(2);
  auto pipe_ends = make_pipe();
  testing::forget_notice();
  std::vector<std::string> notices;
  options config;
  config.on_notice = [&](std::string_view line) { notices.emplace_back(line); };
  run(config, [&] {
    group calls;
    for (int i = 0; i < 2; ++i) calls.spin([&] { offload([&] { block_on(pipe_ends.first()); }); });
    sleep_for(20ms);
    f(calls, notices);
    CHECK(::write(pipe_ends.second(), "x", 1) == 1);
    calls.await_all();
  });
  return notices;
}

}  // namespace

TEST_CASE("offload(): files, directories and programs do not wait behind offloaded calls",
          "[offload]") {
  if (testing::on_sim()) return;  // whose time does not wait for other programs
  const limited_to four(4);
  auto pipe_ends = make_pipe();
  run([&] {
    group blocked;
    for (int i = 0; i < 4; ++i)
      blocked.spin([&] { offload([&] { block_on(pipe_ends.first()); }); });
    sleep_for(20ms);
    CHECK_FALSE(move_on_after(20ms, [] { offload([] {}); }));  // there is no thread for that one
    use_files_and_programs();
    CHECK(::write(pipe_ends.second(), "x", 1) == 1);
    blocked.await_all();
  });
}

TEST_CASE("offload(): files, directories and programs do not wait behind abandoned calls",
          "[offload]") {
  if (testing::on_sim()) return;
  const limited_to two(2);
  auto pipe_ends = make_pipe();
  run([&] {
    group calls;
    for (int i = 0; i < 8; ++i) {  // as many threads as there may ever be
      calls.spin([&] {
        move_on_after(20ms, [&] { offload_owned([pipe = pipe_ends.first()] { block_on(pipe); }); });
      });
    }
    calls.await_all();
    use_files_and_programs();
    CHECK(::write(pipe_ends.second(), "x", 1) == 1);
  });
}

TEST_CASE("options::on_notice reports a call that waits a second for an offload thread",
          "[offload]") {
  if (testing::on_sim()) return;
  const auto notices = notices_while_both_are_blocked([](group& calls, const auto& so_far) {
    calls.spin([] { offload([] {}); });
    sleep_for(20ms);
    std::ostringstream dumped;
    dump(dumped);
    CHECK(contains(dumped.str(), "offloaded calls: 2 being made, 1 waiting for a thread"));
    CHECK(stats().offload_queued == 1);
    CHECK(stats().offload_limit == 2);
    while (so_far.empty()) sleep_for(10ms);
  });
  REQUIRE(notices.size() == 1);
  CHECK(contains(notices[0], "1 offloaded calls have no thread: all 2 (limit 2"));
  CHECK(contains(notices[0], "busy, 2 with calls from "));
  CHECK(contains(notices[0], "offload_room_test.cpp:"));
  CHECK(contains(notices[0], "options.offload_limit"));
}

TEST_CASE("options::on_notice reports calls that are given up within a second, too", "[offload]") {
  if (testing::on_sim()) return;
  const auto notices = notices_while_both_are_blocked([](group&, const auto& so_far) {
    const auto start = clock::now();
    CHECK_FALSE(move_on_after(20ms, [] { offload([] {}); }));
    CHECK(so_far.empty());
    while (so_far.empty()) {
      CHECK_FALSE(move_on_after(20ms, [] { offload([] {}); }));
      sleep_for(20ms);
    }
    CHECK(clock::now() - start >= 1s);
  });
  REQUIRE(notices.size() == 1);
  CHECK(contains(notices[0], "1 offloaded calls have no thread: all 2 (limit 2"));
}

TEST_CASE("options::offload_limit limits the offload threads", "[offload]") {
  const std::size_t count_before = testing::threads::most.load();
  options config;
  config.offload_limit = 65'537;
  CHECK_THROWS_AS(run(config, [] {}), std::invalid_argument);
  config.offload_limit = 3;
  run(config, [] { CHECK(stats().offload_limit == 3); });
  run([] { CHECK(stats().offload_limit == 3); });  // a runtime without a wish leaves it
  testing::threads::most = count_before;
}
