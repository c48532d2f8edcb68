// SPDX-License-Identifier: MIT
// Each allocation of each public call is refused in turn: the call throws or does its work, leaves
// nothing behind, and works again when there is memory.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <motet/motet.hpp>
#include <motet/observe/debug.hpp>
#include <mutex>
#include <new>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "catch.hpp"
#include "quiet.hpp"
#include "sockets.hpp"
#include "support.hpp"
#include "whole/refusing_new.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::bytes_of;

namespace {

/// Counts allocations on all threads, and refuses one of them.
std::atomic<std::size_t> count{0};
std::atomic<std::size_t> refused{0};  // its number, from 1; 0: none

bool is_refused() noexcept {
  return count.fetch_add(1) + 1 == refused.load();
}

}  // namespace

bool testing::refuses_new() noexcept {
  return is_refused();
}

bool testing::refuses_nothrow_new() noexcept {
  return is_refused();
}

namespace {

struct call {
  const char* name;
  void (*make)();
};

void exchange(net::tcp_stream first, net::tcp_stream second) {
  first.write_all("question");
  std::array<std::byte, 8> answer{};
  second.read(answer);
}

/// Awaits a fiber that was cancelled.
template <typename T>
void end_of(const fiber<T>& cancelled_one) {
  try {
    cancelled_one.await();
  } catch (const fiber_cancelled&) {
  }
}

/// What a push could not allocate for stays the caller's, and a later push brings it.
void push_until_pushed() {
  local::channel<int> numbers(300);
  const auto push = [&](int number) {
    try {
      numbers.push(std::move(number));
    } catch (const std::bad_alloc&) {
      numbers.push(std::move(number));
    }
  };
  group members;
  members.spin([&] {
    for (int i = 0; i < 500; ++i) push(i);
    numbers.close();
  });
  snooze();
  int number = 0;
  for (const int item : numbers) {
    if (item != number++) throw std::logic_error("a number is lost");
  }
  members.await_all();
  if (number != 500) throw std::logic_error("numbers are lost");
}

/// A walk goes on behind a refused allocation, and leaves out nothing.
void walk_three_levels() {
  const auto root = std::filesystem::temp_directory_path() /
                    ("motet-no-memory-tree-" + std::to_string(::getpid()));
  std::filesystem::create_directories(root / "a" / "b" / "c");
  directory_walk walk(root.native());
  const auto next = [&] {
    try {
      return walk.next().has_value();
    } catch (const std::bad_alloc&) {
      return walk.next().has_value();
    }
  };
  int entries = 0;
  while (next()) ++entries;
  std::filesystem::remove_all(root);
  if (entries != 3) throw std::logic_error(std::to_string(entries) + " entries");
}

const std::vector<call> calls = {
    {"spin, await", [] { spin([] { return std::string(100, 'x'); }).await(); }},
    {"spin with a name", [] { spin({.name = std::string(100, 'n')}, [] { snooze(); }).await(); }},
    {"spin with a large stack", [] { spin({.stack_size = 1 << 20}, [] {}).await(); }},
    {"a fiber that fails",
     [] {
       try {
         spin([] { throw std::runtime_error("down"); }).await();
       } catch (const std::runtime_error&) {
       }
     }},
    {"group",
     [] {
       group several;
       for (int i = 0; i < 3; ++i) several.spin([] { snooze(); });
       several.await_all();
     }},
    {"cancel",
     [] {
       group members;
       const auto waiter = members.spin([] { suspend(); });
       snooze();
       waiter.cancel();
       end_of(waiter);
     }},
    {"schedule",
     [] {
       group members;
       const auto waiter = members.spin([] { return suspend<std::string>(); });
       snooze();
       waiter.schedule(std::string(100, 'x'));
       waiter.await();
     }},
    {"with_timeout", [] { with_timeout(1h, [] { snooze(); }); }},
    {"move_on_after", [] { move_on_after(1us, [] { suspend(); }); }},
    {"sleep_for", [] { sleep_for(1us); }},
    {"channel",
     [] {
       channel<std::string> items(2);
       items.push(std::string(100, 'x'));
       items.pop();
     }},
    {"channel with a capacity", push_until_pushed},
    {"select",
     [] {
       channel<int> items(1);
       select(on_pop(items, [](std::optional<int>) {}), on_timeout(1us, [] {}));
     }},
    {"mutex, waited for",
     [] {
       mutex lock;
       const std::lock_guard guard(lock);
       group members;
       const auto second = members.spin([&] { const std::lock_guard also(lock); });
       snooze();
       second.cancel();
       end_of(second);
     }},
    {"future",
     [] {
       promise<std::string> giver;
       auto answer = giver.get_future();
       giver.set_value(std::string(100, 'x'));
       answer.get();
     }},
    {"fiber_local",
     [] {
       const fiber_local<std::string> value;
       *value = std::string(100, 'x');
     }},
    {"await_all", [] { await_all([] { return 1; }, [] { return 2; }); }},
    {"await_any", [] { await_any([] { return 1; }, [] { return 1; }); }},
    {"offload", [] { offload([] { return std::string(100, 'x'); }); }},
    {"offload_owned", [] { offload_owned([] { return std::string(100, 'x'); }); }},
    {"thread", [] { thread(testing::quiet(), [] { snooze(); }).await(); }},
    {"thread_pool",
     [] {
       thread_pool workers(2);
       workers.submit([] { return std::string(100, 'x'); }).get();
     }},
    {"file",
     [] {
       const std::string name = std::filesystem::temp_directory_path() / "motet-no-memory";
       file target = file::open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
       target.append(bytes_of(std::string(100, 'x')));
       ::unlink(name.c_str());
     }},
    {"directory",
     [] {
       for ([[maybe_unused]] const directory_entry& entry : directory("/proc/self")) break;
     }},
    {"directory_walk", walk_three_levels},
    {"resolve", [] { dns::resolve("127.0.0.1", "80"); }},
    {"streams of TCP",
     [] {
       net::tcp_listener listener(net::endpoint::loopback(0));
       net::tcp_stream client = net::tcp_stream::connect(listener.local_endpoint());
       exchange(std::move(client), listener.accept());
     }},
    {"stream_pair",
     [] {
       auto ends = net::stream_pair();
       ends.first.write_all("question");
     }},
    {"process", [] { process::start({.program = "/bin/true"}).wait(); }},
    {"dump",
     [] {
       std::ostringstream stream;
       dump(stream, {.stacks = true});
     }},
};

/// Returns: nothing, or what must not have happened.
std::optional<std::string> failure_of(const call& tested, std::size_t index) {
  std::optional<std::string> wrong;
  count = 0;
  refused = index;
  try {
    tested.make();
  } catch (const std::bad_alloc&) {
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::not_enough_memory) wrong = error.what();
  } catch (const std::exception& error) {
    wrong = error.what();
  }
  refused = 0;
  return wrong;
}

}  // namespace

TEST_CASE("bad_alloc: a refused allocation ends the call with an exception and has no effect") {
  run(testing::quiet(), [] {
    for (const call& entry : calls) {
      for (int warm = 0; warm < 2; ++warm) entry.make();
      count = 0;
      entry.make();
      const std::size_t allocations = count;
      const std::size_t descriptors = testing::open_descriptors();
      const std::size_t step = std::max<std::size_t>(1, allocations / testing::scaled(10'000, 30));
      for (std::size_t index = 1; index <= allocations; index += step) {
        INFO(entry.name << ", allocation " << index << " of " << allocations);
        CHECK(failure_of(entry, index).value_or("") == "");
        entry.make();
        CHECK(current().children().empty());
        CHECK(testing::open_descriptors() <= descriptors);
      }
    }
  });
}
