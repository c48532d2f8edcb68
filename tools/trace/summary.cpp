// SPDX-License-Identifier: MIT
// See summary.hpp.
#include "summary.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "words.hpp"

namespace motet_trace {

namespace {

std::string share(std::int64_t part, std::int64_t whole) {
  return whole <= 0 ? "0 %" : std::to_string((100 * part + whole / 2) / whole) + " %";
}

void tell_thread(const ring& from, const thread_line& line, std::ostream& out) {
  const std::int64_t length = line.end - line.begin;
  out << "thread " << line.thread << ": " << span(length) << ", " << share(line.running, length)
      << " of it fibers, " << share(line.asleep, length) << " asleep; "
      << counted(line.turns.size(), "turn") << ", " << number(line.spun) << " spun, "
      << number(line.ended) << " ended, " << number(line.interrupted) << " interrupted; "
      << counted(line.polls, "poll") << ", " << counted(line.sleeps, "sleep");
  const auto by = [&](format::cause cause) { return line.wakes[static_cast<std::size_t>(cause)]; };
  out << "; woken by fibers " << number(by(format::cause::fiber)) << ", by operations "
      << number(by(format::cause::operation)) << ", by timers " << number(by(format::cause::timer))
      << ", by other threads " << number(by(format::cause::mail));
  if (!from.complete) out << "; what was before is lost";
  out << '\n';
}

struct share_of_site {
  std::string label;
  std::int64_t ran = 0;
  std::size_t turns = 0;
};

/// Groups fibers by name, else by call site.
void tell_sites(const timeline& all, std::ostream& out) {
  std::unordered_map<std::uint64_t, share_of_site> of_fibers;
  for (const thread_line& line : all.threads()) {
    for (const turn& each : line.turns) {
      share_of_site& of = of_fibers[each.fiber];
      of.ran += each.end - each.begin;
      ++of.turns;
    }
  }
  std::unordered_map<std::string, share_of_site> by_label;
  for (const auto& [fiber, of] : of_fibers) {
    share_of_site& all_of_it = by_label[all.kind_of(fiber)];
    all_of_it.ran += of.ran;
    all_of_it.turns += of.turns;
  }
  std::vector<share_of_site> sorted;
  for (auto& [label, of] : by_label) sorted.push_back({label, of.ran, of.turns});
  std::sort(sorted.begin(), sorted.end(),
            [](const share_of_site& a, const share_of_site& b) { return a.ran > b.ran; });
  out << "\nTime of fibers:\n";
  for (std::size_t i = 0; i < std::min<std::size_t>(sorted.size(), 10); ++i)
    out << "  " << span(sorted[i].ran) << " in " << counted(sorted[i].turns, "turn") << ": "
        << sorted[i].label << '\n';
}

}  // namespace

void tell_summary(const timeline& all, std::ostream& out) {
  const trace_reader& trace = all.trace();
  out << "process " << trace.process() << ": " << counted(trace.records(), "record") << " of "
      << counted(all.threads().size(), "thread") << '\n';
  for (std::size_t i = 0; i < all.threads().size(); ++i)
    tell_thread(trace.rings()[i], all.threads()[i], out);
  tell_sites(all, out);
}

}  // namespace motet_trace
