// SPDX-License-Identifier: MIT
// How much memory fibers take while they wait, and what is left of it afterwards.
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <motet/motet.hpp>
#include <string>
#include <string_view>

#include "catch.hpp"
#include "platform/guards.hpp"
#include "support.hpp"

using namespace motet;

namespace {

struct usage {
  double resident = 0;
  double page_tables = 0;

  usage operator-(const usage& other) const {
    return {resident - other.resident, page_tables - other.page_tables};
  }
};

/// Returns: the number behind `word` there, in KiB.
double number_in(const char* file, std::string_view word) {
  std::ifstream lines(file);
  double found = 0;
  for (std::string next; lines >> next;) {
    if (next == word) lines >> found;
  }
  return found;
}

/// Returns: what this process uses now, in bytes. Source: proc(5); VmRSS would be an estimate.
usage used_now() {
  return {number_in("/proc/self/smaps_rollup", "Rss:") * 1024,
          number_in("/proc/self/status", "VmPTE:") * 1024};
}

/// Where each guard takes mappings, about 16,000 are the limit.
std::size_t how_many() {
  return testing::guards_take_mappings() ? 8'000 : testing::scaled(1'000'000, 30'000);
}

template <typename Wait>
void park_many(group& all, std::size_t count, Wait wait) {
  for (std::size_t i = 0; i < count; ++i) all.spin(wait);
  snooze();
}

/// Returns: how many bytes a fiber takes while it waits so, without page tables.
template <typename Wait>
double bytes_of_parked(Wait wait) {
  const auto count = static_cast<double>(how_many());
  group all;
  park_many(all, 1'000, wait);
  const usage before = used_now();
  park_many(all, how_many(), wait);
  const usage grown = used_now() - before;
  std::printf("%.0f fibers: %.0f bytes resident each, and %.0f of page tables\n", count,
              grown.resident / count, grown.page_tables / count);
  all.cancel();
  all.await_all();
  return grown.resident / count;
}

}  // namespace

TEST_CASE("a parked fiber, guard included, takes at most 4,400 bytes", "[memory]") {
  run([] { CHECK(bytes_of_parked([] { sleep(); }) <= 4'400); });
}

TEST_CASE("so does a fiber that is suspended", "[memory]") {
  run([] { CHECK(bytes_of_parked([] { suspend(); }) <= 4'400); });
}

TEST_CASE("a fiber that has not begun takes at most 400 bytes", "[memory]") {
  if (testing::guards_take_mappings()) return;  // then its guard is made when it is spun
  run([] {
    constexpr std::size_t count = 100'000;
    group all;
    for (std::size_t i = 0; i < 1'000; ++i) all.spin([] {});
    const usage before = used_now();
    for (std::size_t i = 0; i < count; ++i) all.spin([] {});
    const usage grown = used_now() - before;
    std::printf("%.0f bytes resident, and %.0f of page tables\n", grown.resident / count,
                grown.page_tables / count);
    CHECK((grown.resident + grown.page_tables) / count <= 400);
    all.await_all();
  });
}

TEST_CASE("a thread that has had many fibers at once gives their stacks back when it waits",
          "[memory]") {
  if (testing::disabled("stack_reuse")) return;  // then it does so at once
  run([] {
    const usage before = used_now();
    {
      group all;
      park_many(all, 8'000, [] { sleep(); });
      all.cancel();
      all.await_all();
    }
    const usage at_most = used_now() - before;
    CHECK(at_most.resident >= 8'000 * 4'096);
    const auto kept = [&] { return (used_now() - before).resident; };
    for (int i = 0; i < 100 && kept() > at_most.resident / 3; ++i) {
      sleep_for(std::chrono::milliseconds(50));
    }
    CHECK(kept() <= at_most.resident / 3);
  });
}
