// SPDX-License-Identifier: MIT
// The plain threads that make blocking calls: how many there are, and how many there may be.
#pragma once

#include <dirent.h>

#include <chrono>
#include <cstddef>
#include <fstream>
#include <memory>
#include <motet/motet.hpp>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "platform/offload/blocking_pool.hpp"
#include "platform/offload/offload_room.hpp"

namespace testing {

using namespace motet;
using namespace std::chrono_literals;
namespace threads = motet::detail::blocking_pool;

/// Threads that are idle do not stay for long in these tests.
[[maybe_unused]] inline const bool impatient = [] {
  threads::idle_time = 100ms;
  return true;
}();

/// Returns: how many threads of this process have that name.
inline int count_threads(std::string_view thread_name) {
  int count = 0;
  const std::unique_ptr<DIR, int (*)(DIR*)> tasks(::opendir("/proc/self/task"), &::closedir);
  while (const dirent* entry = ::readdir(tasks.get())) {
    std::ifstream file("/proc/self/task/" + std::string(entry->d_name) + "/comm");
    std::string name;
    std::getline(file, name);
    if (name == thread_name) ++count;
  }
  return count;
}

inline int count_workers() {
  return count_threads("motet offload");
}

inline void until_no_worker_is_left() {
  while (count_workers() > 0) std::this_thread::sleep_for(5ms);
}

/// A notice that calls have no thread is not repeated for ten seconds: the next one is the first.
inline void forget_notice() {
  auto& pool = threads::thread_set::get();
  const std::lock_guard guard(pool.lock);
  pool.calls.last_report = {};
}

/// At most so many, for as long as it lives; none at first.
class limited_to {
 public:
  explicit limited_to(std::size_t limit, std::atomic<std::size_t>& room = threads::most)
      : room_(room), old_limit_(room.exchange(limit)) {
    until_no_worker_is_left();
  }
  limited_to(const limited_to&) = delete;
  limited_to& operator=(const limited_to&) = delete;
  ~limited_to() { room_ = old_limit_; }

 private:
  std::atomic<std::size_t>& room_;
  std::size_t old_limit_;
};

template <typename F>
void eventually(F holds) {
  while (!holds()) std::this_thread::sleep_for(1ms);
}

}  // namespace testing
