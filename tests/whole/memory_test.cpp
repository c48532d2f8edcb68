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
  double value = 0;
  for (std::string next; lines >> next;) {
    if (next == word) lines >> value;
  }
  return value;
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
void park_many(group& members, std::size_t count, Wait wait) {
  for (std::size_t i = 0; i < count; ++i) members.spin(wait);
  snooze();
}

/// Returns: how many bytes a fiber takes while it waits so, without page tables.
template <typename Wait>
double bytes_of_parked(Wait wait) {
  const auto count = static_cast<double>(how_many());
  group members;
  park_many(members, 1'000, wait);
  const usage start = used_now();
  park_many(members, how_many(), wait);
  const usage growth = used_now() - start;
  std::printf("%.0f fibers: %.0f bytes resident each, and %.0f of page tables\n", count,
              growth.resident / count, growth.page_tables / count);
  members.cancel();
  members.await_all();
  return growth.resident / count;
}

}  // namespace

TEST_CASE("fiber: a parked one takes at most 4,400 bytes including its guard page", "[memory]") {
  run([] { CHECK(bytes_of_parked([] { sleep(); }) <= 4'400); });
}

TEST_CASE("fiber: a suspended one takes at most 4,400 bytes", "[memory]") {
  run([] { CHECK(bytes_of_parked([] { suspend(); }) <= 4'400); });
}

TEST_CASE("fiber: an unstarted one takes at most 400 bytes", "[memory]") {
  if (testing::guards_take_mappings()) return;  // then its guard is made when it is spun
  run([] {
    constexpr std::size_t count = 100'000;
    group members;
    for (std::size_t i = 0; i < 1'000; ++i) members.spin([] {});
    const usage start = used_now();
    for (std::size_t i = 0; i < count; ++i) members.spin([] {});
    const usage growth = used_now() - start;
    std::printf("%.0f bytes resident, and %.0f of page tables\n", growth.resident / count,
                growth.page_tables / count);
    CHECK((growth.resident + growth.page_tables) / count <= 400);
    members.await_all();
  });
}

TEST_CASE("thread: after a crowd of fibers it releases their stacks when it waits", "[memory]") {
  if (testing::disabled("stack_reuse")) return;  // then it does so at once
  run([] {
    const usage start = used_now();
    {
      group members;
      park_many(members, 8'000, [] { sleep(); });
      members.cancel();
      members.await_all();
    }
    const usage at_most = used_now() - start;
    CHECK(at_most.resident >= 8'000 * 4'096);
    const auto growth = [&] { return (used_now() - start).resident; };
    for (int i = 0; i < 100 && growth() > at_most.resident / 3; ++i) {
      sleep_for(std::chrono::milliseconds(50));
    }
    CHECK(growth() <= at_most.resident / 3);
  });
}
