// SPDX-License-Identifier: MIT
// See testing/coverage.hpp.
#include "testing/coverage.hpp"

#include <chrono>

namespace motet { inline namespace MOTET_ABI { namespace testing {

namespace {

struct naming {
  choice kind;
  const char* all;
  const char* unusual;
};

/// In the order in which they are told.
constexpr naming namings[] = {{choice::wake, "orders of wake-ups", "changed"},
                              {choice::next, "next fibers", "not the first"},
                              {choice::thread, "next threads", "another one"},
                              {choice::branch, "branches of select", "not the first"},
                              {choice::program, "random numbers", "not 0"},
                              {choice::latency, "latencies", "not the shortest"},
                              {choice::transfer, "sizes of transfers", "not the largest"},
                              {choice::fault, "chances of faults", "not 0"},
                              {choice::offload, "offloaded calls", "late"},
                              {choice::crash, "crashes", "with a loss of power"},
                              {choice::disk, "fates of writes and names", "not kept"},
                              {choice::change, "changes of priorities", "not 0"},
                              {choice::buggify, "chances of buggify", "not 0"}};

}  // namespace

void coverage::add(const outcome& one) {
  ++seeds_;
  steps_ += one.steps;
  span_ += one.span;
}

void coverage::add(const decision& one) {
  tally& count = decisions_[one.kind];
  ++count.all;
  if (one.taken != 0) ++count.unusual;
}

void coverage::add_site(const std::string& site, bool happened) {
  tally& count = sites_[site];
  ++count.all;
  if (happened) ++count.unusual;
}

std::string coverage::text() const {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(span_).count();
  std::string text = "motet: " + std::to_string(seeds_) + " simulations, " +
                     std::to_string(steps_) + " steps, " + std::to_string(seconds) +
                     " s of virtual time\n";
  for (const naming& each : namings) {
    const auto found = decisions_.find(each.kind);
    if (found == decisions_.end()) continue;
    text += "motet:   " + std::to_string(found->second.all) + " " + each.all + ", " +
            std::to_string(found->second.unusual) + " " + each.unusual + "\n";
  }
  for (const auto& [site, count] : sites_)
    text += "motet:   buggify() at " + site + ": " + std::to_string(count.unusual) + " of " +
            std::to_string(count.all) + "\n";
  return text;
}

}}}  // namespace motet::MOTET_ABI::testing
