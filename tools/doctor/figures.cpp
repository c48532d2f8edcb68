// SPDX-License-Identifier: MIT
// See figures.hpp. A figure is the best of several short rounds: what disturbs them makes them only
// longer.
#include "figures.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <iomanip>
#include <motet/motet.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host.hpp"
#if defined(WITH_STATS)
#include <motet/observe/stats.hpp>
#endif

namespace motet_doctor {

namespace {

using namespace std::chrono_literals;

/// Calls `round(n)` for some 40 ms. Returns: the nanoseconds that one of the n took, at best.
template <typename F>
double best_of_rounds(int n, F round) {
  double best = 1e18;
  const auto end = std::chrono::steady_clock::now() + 40ms;
  for (int rounds = 0; rounds < 3 || std::chrono::steady_clock::now() < end; ++rounds) {
    const auto start = std::chrono::steady_clock::now();
    round(n);
    const std::chrono::duration<double, std::nano> duration =
        std::chrono::steady_clock::now() - start;
    best = std::min(best, duration.count() / n);
  }
  return best;
}

double of_a_switch() {
  return best_of_rounds(20'000, [](int n) {
    motet::group fibers;
    for (int i = 0; i < 2; ++i) {
      fibers.spin([n] {
        for (int j = 0; j < n / 2; ++j) motet::snooze();
      });
    }
    fibers.await_all();
  });
}

/// In a fresh process: stacks are mapped, and touched for the first time.
double of_a_new_fiber() {
  constexpr int count = 5'000;
  const auto start = std::chrono::steady_clock::now();
  motet::group fibers;
  for (int i = 0; i < count; ++i) fibers.spin([] { motet::snooze(); });
  fibers.await_all();
  const std::chrono::duration<double, std::nano> duration =
      std::chrono::steady_clock::now() - start;
  return duration.count() / count;
}

/// A byte back and forth, with a wait for each.
double of_an_exchange() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0)
    throw std::runtime_error("socketpair");
  const motet::fd first_end(ends[0]), second_end(ends[1]);
  const auto exchange = [](int fd, bool first, int n) {
    std::array<std::byte, 1> byte{};
    if (first) motet::io::write(fd, byte);
    for (int i = 0; i < n; ++i) {
      motet::io::read(fd, byte);
      if (!first || i + 1 < n) motet::io::write(fd, byte);
    }
  };
  return best_of_rounds(500, [&](int n) {
    motet::group fibers;
    fibers.spin([&] { exchange(first_end.get(), true, n); });
    fibers.spin([&] { exchange(second_end.get(), false, n); });
    fibers.await_all();
  });
}

/// How late a sleep of 1 ms ends.
double of_a_sleep() {
  double least = 1e18;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    motet::sleep_for(1ms);
    const std::chrono::duration<double, std::nano> late =
        std::chrono::steady_clock::now() - start - 1ms;
    least = std::min(least, late.count());
  }
  return least;
}

/// The most KiB of their stacks that fibers use for a write and a read; "-" if nothing measures
/// that.
std::string of_a_stack() {
#if defined(WITH_STATS)
  motet::stats();  // from here on one fiber in 64 is measured
  for (int i = 0; i < 640; ++i) {
    motet::spin([] {
      motet::pipe both_ends = motet::pipe::open();
      std::array<std::byte, 1> byte{};
      both_ends.write(byte);
      both_ends.read(byte);
    }).await();
  }
  std::size_t most = 0;
  for (const motet::stack_stats& entry : motet::stats().stacks) most = std::max(most, entry.most);
  if (most > 0) return std::to_string(most / 1024);
#endif
  return "-";
}

constexpr std::array<std::string_view, 8> features = {
    "defer_taskrun",     "registered_ring", "newer_operations", "no_sqarray",
    "absolute_timeouts", "no_iowait",       "process_madvise",  "guard"};

struct way {
  std::string label;
  std::string backend;
  std::string feature;  // a feature
};

std::vector<way> ways() {
  std::vector<way> result;
  const bool ring = why_not("io_uring").empty();
  for (const char* name : {"io_uring", "libev"}) {
    if (why_not(name).empty()) result.push_back({name, name, ""});
  }
  if (result.empty()) return result;
  for (const std::string_view feature : features) {
    const bool of_stacks = feature == "process_madvise" || feature == "guard";
    if (!ring && !of_stacks) continue;
    result.push_back({"without " + std::string(feature), result[0].backend, std::string(feature)});
  }
  return result;
}

/// Returns: this process's environment without motet's variables.
std::vector<std::string> plain_environment() {
  std::vector<std::string> result;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with("MOTET_")) result.emplace_back(*variable);
  }
  return result;
}

std::string figures_of(const way& setup) {
  std::vector<std::string> environment = plain_environment();
  environment.push_back("MOTET_BACKEND=" + setup.backend);
  environment.push_back("MOTET_DISABLE=" + setup.feature);
  return motet::run_command({.program = "/proc/self/exe",
                             .args = {"--measure"},
                             .environment = std::move(environment)})
      .out;
}

}  // namespace

void measure() {
  const double a_new_fiber = of_a_new_fiber();
  const double a_switch = of_a_switch(), an_exchange = of_an_exchange(), a_sleep = of_a_sleep();
  std::printf("%.1f %.0f %.0f %.1f %s\n", a_switch, a_new_fiber, an_exchange, a_sleep / 1e3,
              of_a_stack().c_str());
}

void tell_figures(std::ostream& output) {
  const auto line = [&](const std::string& label, const std::array<std::string, 5>& figures) {
    output << std::left << std::setw(28) << label << std::right;
    for (const std::string& figure : figures) output << std::setw(16) << figure;
    output << '\n';
  };
  line("", {"switch, ns", "new fiber, ns", "exchange, ns", "sleep late, us", "stack, KiB"});
  for (const way& setup : ways()) {
    std::istringstream text(figures_of(setup));
    std::array<std::string, 5> figures;
    for (std::string& figure : figures) text >> figure;
    line(setup.label, figures);
  }
}

}  // namespace motet_doctor
