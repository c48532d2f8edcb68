// SPDX-License-Identifier: MIT
// Histories that are linearizable, and histories that are not.
#include <motet/testing.hpp>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"

namespace {

using motet::testing::history;

using content = std::optional<std::string>;

void write(history& all, const char* key, content value) {
  all.end_write(all.begin_write(key, std::move(value)));
}

void read(history& all, const char* key, content value) {
  all.end_read(all.begin_read(key), std::move(value));
}

bool holds(const history& all) {
  return !all.violation().has_value();
}

}  // namespace

TEST_CASE("testing::history: one client sees what it has written") {
  history all;
  CHECK(holds(all));
  read(all, "k", {});
  write(all, "k", "1");
  read(all, "k", "1");
  read(all, "other", {});
  write(all, "k", {});
  read(all, "k", {});
  CHECK(holds(all));
  read(all, "k", "1");
  REQUIRE_FALSE(holds(all));
  CHECK(all.violation()->find("no order of these operations on \"k\" agrees with the answers:") ==
        0);
  CHECK(all.violation()->find("read \"1\"") != std::string::npos);
  CHECK(all.violation()->find("other") == std::string::npos);
}

TEST_CASE("testing::history: a write that is under way may be seen, and then stays") {
  history all;
  write(all, "k", "1");
  const std::size_t second = all.begin_write("k", "2");
  read(all, "k", "1");
  read(all, "k", "2");
  CHECK(holds(all));
  history older = std::move(all);
  read(older, "k", "1");  // and back
  CHECK_FALSE(holds(older));
  older.end_write(second);
}

TEST_CASE("testing::history: a write without an answer may come late, or never") {
  history all;
  all.begin_write("k", "lost");
  read(all, "k", {});
  CHECK(holds(all));
  read(all, "k", "lost");
  CHECK(holds(all));
  read(all, "k", {});
  CHECK_FALSE(holds(all));
}

TEST_CASE("testing::history: what has ended has had its effect") {
  history all;
  write(all, "k", "1");
  write(all, "k", "2");
  read(all, "k", "1");
  CHECK_FALSE(holds(all));
}

TEST_CASE("testing::history: two reads at once agree on an order") {
  history all;
  const std::size_t one = all.begin_write("k", "1");
  const std::size_t two = all.begin_write("k", "2");
  const std::size_t first = all.begin_read("k");
  all.end_read(first, "1");
  read(all, "k", "2");
  all.end_write(one);
  all.end_write(two);
  CHECK(holds(all));
  read(all, "k", "1");
  CHECK_FALSE(holds(all));
}

TEST_CASE("testing::history: calls that do not fit are refused") {
  history all;
  const std::size_t reading = all.begin_read("k");
  const std::size_t writing = all.begin_write("k", "1");
  CHECK_THROWS_AS(all.end_write(reading), std::invalid_argument);
  CHECK_THROWS_AS(all.end_read(writing, {}), std::invalid_argument);
  CHECK_THROWS_AS(all.end_read(2, {}), std::invalid_argument);
  all.end_write(writing);
  CHECK_THROWS_AS(all.end_write(writing), std::invalid_argument);
}

/// Operations take effect at a random moment between their begin and their end: that is an order.
TEST_CASE("testing::history: what a correct store answers always holds, a stale answer never") {
  std::mt19937 random(1);
  const auto below = [&](std::size_t count) { return random() % count; };
  for (int round = 0; round < 100; ++round) {
    history all;
    content value;
    struct client {
      std::size_t number = 0;
      content value;
      int stage = 0;  // 0: nothing is under way; 1: it has begun; 2: it has had its effect
      bool writes = false;
    };
    std::vector<client> clients(4);
    for (int i = 0; i < 200; ++i) {
      client& each = clients[below(clients.size())];
      if (each.stage == 0) {
        each.writes = below(2) == 0;
        if (each.writes) each.value = std::to_string(i);
        each.number = each.writes ? all.begin_write("k", each.value) : all.begin_read("k");
      } else if (each.stage == 1) {
        (each.writes ? value : each.value) = each.writes ? each.value : value;
      } else if (each.writes) {
        all.end_write(each.number);
      } else {
        all.end_read(each.number, each.value);
      }
      each.stage = (each.stage + 1) % 3;
    }
    REQUIRE(holds(all));
    write(all, "k", "a");
    write(all, "k", "b");
    read(all, "k", "a");
    REQUIRE_FALSE(holds(all));
  }
}

TEST_CASE("testing::history: many writes without an answer, and many reads at once") {
  history all;
  for (int i = 0; i < 200; ++i) all.begin_write("k", std::to_string(i));
  std::vector<std::size_t> reads;
  for (int i = 0; i < 200; ++i) reads.push_back(all.begin_read("k"));
  for (const std::size_t number : reads) all.end_read(number, "7");
  CHECK(holds(all));
  read(all, "k", {});
  CHECK_FALSE(holds(all));
}
