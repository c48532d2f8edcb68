// SPDX-License-Identifier: MIT
// The example of Raft on simulated hosts: nodes that crash, lose power and are cut off agree on one
// sequence; without fsync they do not.
#include "../examples/raft/raft.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <motet/motet.hpp>
#include <motet/testing.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

namespace {

using namespace motet;
using namespace std::chrono_literals;
using motet::testing::host;
using motet::testing::outcome;
using motet::testing::plan;
using motet::testing::world;

/// What all nodes have done, as an observer sees it.
struct observer {
  std::map<std::uint64_t, std::string> agreed;   // by index
  std::map<std::uint64_t, std::size_t> leaders;  // by term
  std::set<std::string> confirmed;               // to those who have submitted them
  std::vector<raft::node*> nodes{3};             // null: it is down
  std::string violation;

  void apply(std::uint64_t index, const std::string& command) {
    const auto [found, is_new] = agreed.try_emplace(index, command);
    if (!is_new && found->second != command)
      violation = "two commands have one index: " + found->second + " and " + command;
  }

  bool holds() {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i] == nullptr || nodes[i]->present_role() != raft::role::leader) continue;
      const auto [found, is_new] = leaders.try_emplace(nodes[i]->term(), i);
      if (found->second != i) violation = "a term has two leaders";
    }
    return violation.empty();
  }
};

/// A node, and a client beside it.
void run_node(world& in, observer& all, std::size_t self, bool syncs) {
  raft::options how;
  how.self = self;
  for (int i = 0; i < 3; ++i)
    how.nodes.push_back(net::endpoint::parse("10.0.0." + std::to_string(i + 2) + ":7000"));
  how.directory = "/";
  how.syncs = syncs;
  how.random = [&in](std::uint32_t limit) { return in.random(limit); };
  raft::node node(
      how, [&](std::uint64_t index, const std::string& command) { all.apply(index, command); });
  struct registration {
    raft::node*& place;
    ~registration() { place = nullptr; }
  } guard{all.nodes[self]};
  guard.place = &node;
  group tasks;
  tasks.spin([&] { node.run(); });
  tasks.spin([&, self] {
    for (;;) {
      sleep_for(std::chrono::milliseconds(in.random(400)));
      const std::string command =
          std::to_string(self) + "." + std::to_string(clock::now().time_since_epoch().count());
      if (node.submit(command)) all.confirmed.insert(command);
    }
  });
  tasks.await_all();
}

void agree_under_crashes(world& in, bool syncs) {
  observer all;
  in.net().losses = 0.05;
  in.net().duplicates = 0.05;
  in.always([&] { return all.holds(); });
  std::vector<host> hosts;
  for (std::size_t i = 0; i < 3; ++i) {
    hosts.push_back(
        in.add("node" + std::to_string(i), [&, i, syncs] { run_node(in, all, i, syncs); }));
  }
  for (int i = 0; i < 8; ++i) {
    sleep_for(std::chrono::milliseconds(in.random(1'000)));
    const std::uint32_t victim = in.random(3);
    switch (in.random(3)) {
      case 0:
        in.partition(hosts[victim], hosts[(victim + 1) % 3]);
        break;
      case 1:
        in.heal();
        break;
      default:
        in.crash(hosts[victim]);
        sleep_for(std::chrono::milliseconds(in.random(300)));
        in.restart(hosts[victim]);
    }
  }
  const std::size_t before = all.confirmed.size();
  in.eventually([&] { return all.confirmed.size() >= before + 3; }, 1min);
  std::set<std::string> agreed;
  for (const auto& [index, command] : all.agreed) agreed.insert(command);
  for (const std::string& each : all.confirmed) {
    if (!agreed.contains(each)) throw std::runtime_error("a confirmed command is not agreed on");
  }
  if (!all.violation.empty()) throw std::runtime_error(all.violation);
}

}  // namespace

TEST_CASE("testing::world: nodes of Raft agree under crashes and partitions") {
  const std::size_t seeds = ::testing::scaled(10'000, ::testing::under_tsan ? 10 : 60);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const outcome result =
        motet::testing::run({.seed = seed}, [](world& in) { agree_under_crashes(in, true); });
    INFO("seed " << seed << ": " << result.failure);
    REQUIRE(result.passed);
  }
}

TEST_CASE("testing::world: without fsync nodes of Raft disagree, which few seeds show") {
  plan how;
  outcome result;
  do {
    result = motet::testing::run(how, [](world& in) { agree_under_crashes(in, false); });
  } while (result.passed && ++how.seed < 1'000);
  INFO("seed " << how.seed << ": " << result.failure);
  CHECK_FALSE(result.passed);
}
