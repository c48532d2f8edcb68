// SPDX-License-Identifier: MIT
// Clients of databases and of a web server, written for threads: each makes one call that its
// server answers after a second. All run at the same time, as fibers of one thread, on
// threads, or in the asynchronous mode of the client's library.
//
// usage: clients KIND SERVER COUNT fibers|threads|offload|asynchronous [LIMIT-IN-MS]
//
// Prints how many calls succeeded, how many the limit ended, how long all took, how late the latest
// end was, how many descriptors are left over, the memory in kB for each connection and its call,
// and the processor time in ms for each call.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <motet/motet.hpp>
#include <motet/posix.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "posix/clients/client.hpp"

namespace {

using namespace std::chrono_literals;
using motet::clock;

using clients::client;
using clients::library;

std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

/// Returns: of the lines of /proc/self/status the number of `name`, in kB.
long memory_kilobytes(std::string_view name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name)) return std::stol(line.substr(name.size()));
  }
  throw std::runtime_error("/proc/self/status");
}

double processor_milliseconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

using job = std::function<void()>;

void run_all(std::string_view how, const std::vector<job>& jobs) {
  if (how == "threads") {
    std::vector<std::thread> threads;
    threads.reserve(jobs.size());
    for (const job& each : jobs) threads.emplace_back(each);
    for (std::thread& thread : threads) thread.join();
    return;
  }
  motet::group fibers;
  for (const job& each : jobs) {
    fibers.spin([&each, offloads = how == "offload"] {
      if (offloads) {
        motet::offload(each);
      } else {
        each();
      }
    });
  }
  fibers.await_all();
}

struct outcome {
  std::atomic<std::size_t> successes{0};
  std::size_t ended = 0;  // by the limit, which only fibers have
  clock::duration latest{};
};

/// Notes how a call ended, which the limit may have done.
void call(client& one, std::optional<clock::duration> limit, outcome& all) {
  if (!limit.has_value()) {
    if (one.call()) ++all.successes;
    return;
  }
  const auto start = clock::now();
  try {
    if (motet::with_timeout(*limit, [&] { return one.call(); })) ++all.successes;
  } catch (const motet::timed_out&) {
    ++all.ended;
    all.latest = std::max(all.latest, clock::now() - start - *limit);
  }
}

int run_clients(const library& kind, const std::string& server, std::size_t count,
                std::string_view how, std::optional<clock::duration> limit) {
  const std::ptrdiff_t descriptors = open_descriptors();
  const long memory = memory_kilobytes("VmRSS:");
  clients::connections connections;
  const bool connects_all = how == "asynchronous" && kind.connect_all != nullptr;
  std::vector<job> calls;
  outcome all;
  for (std::size_t i = 0; i < count; ++i) {
    client& one = *connections.emplace_back(kind.make(server));
    if (!connects_all) one.connect();
    calls.emplace_back([&one, &all, limit] { call(one, limit, all); });
  }
  if (connects_all) motet::posix::plain([&] { kind.connect_all(connections); });
  const double processor = processor_milliseconds();
  const auto start = clock::now();
  if (how == "asynchronous") {
    motet::posix::plain([&] { all.successes = kind.call_all(connections); });
  } else {
    run_all(how, calls);
  }
  const auto elapsed = clock::now() - start;
  const auto per_call = static_cast<double>(count);
  const double used = processor_milliseconds() - processor;
  const long more_memory = memory_kilobytes("VmHWM:") - memory;
  connections.clear();
  const auto milliseconds = [](clock::duration span) {
    return std::chrono::duration<double, std::milli>(span).count();
  };
  std::printf(
      "successes=%zu ended=%zu elapsed=%.1f latest=%.1f descriptors=%td memory=%.1f "
      "processor=%.3f\n",
      all.successes.load(), all.ended, milliseconds(elapsed), milliseconds(all.latest),
      open_descriptors() - descriptors, static_cast<double>(more_memory) / per_call,
      used / per_call);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto found = argc < 5 ? clients::libraries().end() : clients::libraries().find(argv[1]);
  if (found == clients::libraries().end()) {
    std::fputs(
        "usage: clients KIND SERVER COUNT fibers|threads|offload|asynchronous [LIMIT-IN-MS]\n",
        stderr);
    for (const auto& [name, kind] : clients::libraries())
      std::fprintf(stderr, "kind: %s\n", name.data());
    return 2;
  }
  const library& kind = found->second;
  const std::string server = argv[2];
  const auto count = static_cast<std::size_t>(std::atoi(argv[3]));
  std::optional<clock::duration> limit;
  if (argc > 5) limit = std::chrono::milliseconds(std::atoi(argv[5]));
  motet::options config;
  config.offload_limit = count;
  return motet::run(config, [&] { return run_clients(kind, server, count, argv[4], limit); });
}
