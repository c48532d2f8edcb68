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

namespace motet_doctor {

namespace {

using namespace std::chrono_literals;

/// Calls `round(n)` for some 40 ms. Returns: the nanoseconds that one of the n took, at best.
template <typename F>
double best_of_rounds(int n, F round) {
  double best = 1e18;
  const auto end = std::chrono::steady_clock::now() + 40ms;
  for (int rounds = 0; rounds < 3 || std::chrono::steady_clock::now() < end; ++rounds) {
    const auto from = std::chrono::steady_clock::now();
    round(n);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - from;
    best = std::min(best, took.count() / n);
  }
  return best;
}

double of_a_switch() {
  return best_of_rounds(20'000, [](int n) {
    motet::group both;
    for (int i = 0; i < 2; ++i) {
      both.spin([n] {
        for (int j = 0; j < n / 2; ++j) motet::snooze();
      });
    }
    both.await_all();
  });
}

/// In a fresh process: stacks are mapped, and touched for the first time.
double of_a_new_fiber() {
  constexpr int count = 5'000;
  const auto from = std::chrono::steady_clock::now();
  motet::group all;
  for (int i = 0; i < count; ++i) all.spin([] { motet::snooze(); });
  all.await_all();
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - from;
  return took.count() / count;
}

/// A byte back and forth, with a wait for each.
double of_an_exchange() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0)
    throw std::runtime_error("socketpair");
  const motet::fd here(ends[0]), there(ends[1]);
  const auto exchange = [](int fd, bool first, int n) {
    std::array<std::byte, 1> one{};
    if (first) motet::io::write(fd, one);
    for (int i = 0; i < n; ++i) {
      motet::io::read(fd, one);
      if (!first || i + 1 < n) motet::io::write(fd, one);
    }
  };
  return best_of_rounds(500, [&](int n) {
    motet::group both;
    both.spin([&] { exchange(here.get(), true, n); });
    both.spin([&] { exchange(there.get(), false, n); });
    both.await_all();
  });
}

/// How late a sleep of 1 ms ends.
double of_a_sleep() {
  double least = 1e18;
  for (int i = 0; i < 5; ++i) {
    const auto from = std::chrono::steady_clock::now();
    motet::sleep_for(1ms);
    const std::chrono::duration<double, std::nano> late =
        std::chrono::steady_clock::now() - from - 1ms;
    least = std::min(least, late.count());
  }
  return least;
}

constexpr std::array<std::string_view, 8> features = {
    "defer_taskrun",     "registered_ring", "newer_operations", "no_sqarray",
    "absolute_timeouts", "no_iowait",       "process_madvise",  "guard"};

struct way {
  std::string label;
  std::string backend;
  std::string without;  // a feature
};

std::vector<way> ways() {
  std::vector<way> found;
  const bool ring = why_not("io_uring").empty();
  for (const char* name : {"io_uring", "libev"}) {
    if (why_not(name).empty()) found.push_back({name, name, ""});
  }
  if (found.empty()) return found;
  for (const std::string_view each : features) {
    const bool of_stacks = each == "process_madvise" || each == "guard";
    if (!ring && !of_stacks) continue;
    found.push_back({"without " + std::string(each), found[0].backend, std::string(each)});
  }
  return found;
}

/// Returns: this process's environment without motet's variables.
std::vector<std::string> plain_environment() {
  std::vector<std::string> kept;
  for (char** each = environ; *each != nullptr; ++each) {
    if (!std::string_view(*each).starts_with("MOTET_")) kept.emplace_back(*each);
  }
  return kept;
}

std::string figures_of(const way& how) {
  std::vector<std::string> environment = plain_environment();
  environment.push_back("MOTET_BACKEND=" + how.backend);
  environment.push_back("MOTET_DISABLE=" + how.without);
  return motet::run_command({.program = "/proc/self/exe",
                             .args = {"--measure"},
                             .environment = std::move(environment)})
      .out;
}

}  // namespace

void measure() {
  const double a_new_fiber = of_a_new_fiber();
  std::printf("%.1f %.0f %.0f %.1f\n", of_a_switch(), a_new_fiber, of_an_exchange(),
              of_a_sleep() / 1e3);
}

void tell_figures(std::ostream& out) {
  const auto line = [&](const std::string& label, const std::array<std::string, 4>& figures) {
    out << std::left << std::setw(28) << label << std::right;
    for (const std::string& each : figures) out << std::setw(16) << each;
    out << '\n';
  };
  line("", {"switch, ns", "new fiber, ns", "exchange, ns", "sleep late, us"});
  for (const way& each : ways()) {
    std::istringstream text(figures_of(each));
    std::array<std::string, 4> figures;
    for (std::string& figure : figures) text >> figure;
    line(each.label, figures);
  }
}

}  // namespace motet_doctor
