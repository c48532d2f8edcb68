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

void tell_thread(const ring& source, const thread_line& line, std::ostream& output) {
  const std::int64_t length = line.end - line.begin;
  output << "thread " << line.thread << ": " << span(length) << ", " << share(line.run_time, length)
         << " of it fibers, " << share(line.asleep, length) << " asleep; "
         << counted(line.slices.size(), "turn") << ", " << number(line.spins) << " spun, "
         << number(line.ends) << " ended, " << number(line.interruptions) << " interrupted; "
         << counted(line.polls, "poll") << ", " << counted(line.sleeps, "sleep");
  const auto wakes_by = [&](format::cause cause) {
    return line.wakes[static_cast<std::size_t>(cause)];
  };
  output << "; woken by fibers " << number(wakes_by(format::cause::fiber)) << ", by operations "
         << number(wakes_by(format::cause::operation)) << ", by timers "
         << number(wakes_by(format::cause::timer)) << ", by other threads "
         << number(wakes_by(format::cause::mail));
  if (!source.complete) output << "; what was before is lost";
  output << '\n';
}

struct share_of_site {
  std::string label;
  std::int64_t ran = 0;
  std::size_t slices = 0;
};

/// Groups fibers by name, else by call site.
void tell_sites(const timeline& history, std::ostream& output) {
  std::unordered_map<std::uint64_t, share_of_site> of_fibers;
  for (const thread_line& line : history.threads()) {
    for (const slice& entry : line.slices) {
      share_of_site& total = of_fibers[entry.fiber];
      total.ran += entry.end - entry.begin;
      ++total.slices;
    }
  }
  std::unordered_map<std::string, share_of_site> by_label;
  for (const auto& [fiber, total] : of_fibers) {
    share_of_site& all_of_it = by_label[history.kind_of(fiber)];
    all_of_it.ran += total.ran;
    all_of_it.slices += total.slices;
  }
  std::vector<share_of_site> sorted;
  for (auto& [label, total] : by_label) sorted.push_back({label, total.ran, total.slices});
  std::sort(sorted.begin(), sorted.end(),
            [](const share_of_site& a, const share_of_site& b) { return a.ran > b.ran; });
  output << "\nTime of fibers:\n";
  for (std::size_t i = 0; i < std::min<std::size_t>(sorted.size(), 10); ++i)
    output << "  " << span(sorted[i].ran) << " in " << counted(sorted[i].slices, "turn") << ": "
           << sorted[i].label << '\n';
}

}  // namespace

void tell_summary(const timeline& history, std::ostream& output) {
  const trace_reader& trace = history.trace();
  output << "process " << trace.process() << ": " << counted(trace.records(), "record") << " of "
         << counted(history.threads().size(), "thread") << '\n';
  for (std::size_t i = 0; i < history.threads().size(); ++i)
    tell_thread(trace.rings()[i], history.threads()[i], output);
  tell_sites(history, output);
}

}  // namespace motet_trace
