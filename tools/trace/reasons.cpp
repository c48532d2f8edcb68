// SPDX-License-Identifier: MIT
// See reasons.hpp. A fiber is late because it queues, or because its timer fires late. In both
// cases other fibers ran meanwhile, and the question is whether one of them ran for long.
#include "reasons.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "words.hpp"

namespace motet_trace {

namespace {

constexpr std::size_t most_told = 10;
/// Less is no news, of a delay, a wait or a turn.
constexpr std::int64_t long_enough = 1'000'000;

/// What had the thread while a fiber was late.
struct blame {
  std::size_t longest = 0;  // of the turns
  std::int64_t share = 0;   // of it, within the delay
  std::size_t turns = 0;
};

std::optional<blame> blame_for(const thread_line& line, const delay& late) {
  const auto& turns = line.turns;
  auto each = std::partition_point(turns.begin(), turns.end(),
                                   [&](const turn& one) { return one.end <= late.from; });
  blame found;
  for (; each != turns.end() && each->begin < late.to; ++each) {
    const std::int64_t share = std::min(each->end, late.to) - std::max(each->begin, late.from);
    ++found.turns;
    if (share <= found.share) continue;
    found.share = share;
    found.longest = static_cast<std::size_t>(each - turns.begin());
  }
  if (found.turns == 0) return std::nullopt;
  return found;
}

/// The delays for which one turn, or nobody in particular, is to blame.
struct grievance {
  const thread_line* line;
  delay worst;
  std::optional<blame> why;
  std::size_t others = 0;
};

std::string how_it_was_late(const delay& late) {
  if (late.by == format::cause::timer)
    return "its sleep, or its limit, was over, and it stood behind ";
  return late.gave_way ? "it had given way, and stood behind " : "runnable behind ";
}

std::string sentence(const timeline& all, const grievance& each) {
  std::string text = all.label(each.worst.fiber, each.worst.name) + " was late by " +
                     span(each.worst.length()) + ": ";
  if (!each.why) {
    text += "nothing else ran on its thread; the thread had no processor, or was told late";
  } else {
    const turn& culprit = each.line->turns[each.why->longest];
    text += how_it_was_late(each.worst);
    if (2 * each.why->share >= each.worst.length()) {
      text += all.short_label(culprit.fiber, culprit.name) + ", which ran " +
              span(culprit.end - culprit.begin) + " without a switchpoint";
    } else {
      text += counted(each.why->turns, "turn") + " of others, none of which was longer than " +
              span(each.why->share);
    }
  }
  if (each.others > 0) text += "; so were " + counted(each.others, "other");
  return text + '.';
}

std::vector<grievance> grievances_of(const thread_line& line) {
  std::map<std::size_t, grievance> by_culprit;
  std::vector<grievance> found;
  std::vector<delay> delays = line.delays;
  std::sort(delays.begin(), delays.end(),
            [](const delay& a, const delay& b) { return a.length() > b.length(); });
  for (const delay& late : delays) {
    if (late.length() < long_enough) break;
    const auto why = blame_for(line, late);
    const bool one_is_to_blame = why && 2 * why->share >= late.length();
    const std::size_t culprit = one_is_to_blame ? why->longest : line.turns.size() + (why ? 1 : 2);
    const auto [at, is_new] = by_culprit.try_emplace(culprit, grievance{&line, late, why});
    if (!is_new) ++at->second.others;
  }
  for (auto& [culprit, each] : by_culprit) found.push_back(each);
  return found;
}

/// Writes at most this many lines under a title; without items, nothing.
template <typename T, typename F>
void tell(std::ostream& out, const char* title, const std::vector<T>& items, F line) {
  if (items.empty()) return;
  out << '\n' << title << ":\n";
  for (std::size_t i = 0; i < std::min(items.size(), most_told); ++i)
    out << "  " << line(items[i]) << '\n';
}

}  // namespace

void tell_why_late(const timeline& all, std::ostream& out) {
  std::vector<grievance> found;
  for (const thread_line& line : all.threads()) {
    const auto of_thread = grievances_of(line);
    found.insert(found.end(), of_thread.begin(), of_thread.end());
  }
  std::sort(found.begin(), found.end(), [](const grievance& a, const grievance& b) {
    return a.worst.length() > b.worst.length();
  });
  tell(out, "Late", found, [&](const grievance& each) { return sentence(all, each); });
}

void tell_longest_turns(const timeline& all, std::ostream& out) {
  struct long_turn {
    const thread_line* line;
    const turn* one;
  };
  std::vector<long_turn> found;
  for (const thread_line& line : all.threads()) {
    for (const turn& each : line.turns) {
      if (each.end - each.begin >= long_enough) found.push_back({&line, &each});
    }
  }
  const auto length = [](const long_turn& of) { return of.one->end - of.one->begin; };
  const auto first = found.begin() + static_cast<std::ptrdiff_t>(std::min(found.size(), most_told));
  std::partial_sort(found.begin(), first, found.end(),
                    [&](const long_turn& a, const long_turn& b) { return length(a) > length(b); });
  tell(out, "Longest turns, without a switchpoint", found, [&](const long_turn& each) {
    const bool to_the_end = each.one->how == format::kind::none;
    return span(length(each)) + ": " + all.label(each.one->fiber, each.one->name) + ", on thread " +
           std::to_string(each.line->thread) + ", from " + span(each.one->begin) + " on" +
           (to_the_end ? ", to the end of the trace" : "");
  });
}

void tell_contention(const timeline& all, std::ostream& out) {
  std::vector<std::pair<std::uint64_t, contention>> found;
  for (const auto& each : all.objects()) {
    if (each.second.longest >= long_enough) found.push_back(each);
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.second.waited > b.second.waited; });
  tell(out, "Waited for", found, [&](const auto& each) {
    const contention& about = each.second;
    char address[32];
    std::snprintf(address, sizeof address, " 0x%llx", static_cast<unsigned long long>(each.first));
    std::string text(all.trace().text(about.what));
    text += address;
    text += ": " + counted(about.waits, "wait") + ", " + span(about.waited) + " in all, " +
            span(about.longest) + " at the most";
    if (about.keeper != 0)
      text += "; longest kept by " + all.label(about.keeper) + ", for " + span(about.kept);
    return text;
  });
}

void tell_waiting(const timeline& all, std::ostream& out) {
  struct waiting {
    std::uint64_t fiber;
    std::int64_t length;
    const fiber_state* state;
  };
  std::vector<waiting> found;
  for (std::size_t i = 0; i < all.threads().size(); ++i) {
    const thread_line& line = all.threads()[i];
    for (const fiber_state& each : line.waiting)
      found.push_back(
          {all.trace().rings()[i].fibers | each.number, line.end - each.parked_at, &each});
  }
  std::sort(found.begin(), found.end(),
            [](const waiting& a, const waiting& b) { return a.length > b.length; });
  tell(out, "Waiting at the end", found, [&](const waiting& each) {
    return all.label(each.fiber) + ": " + std::string(all.trace().text(each.state->what)) +
           ", for " + span(each.length);
  });
}

}  // namespace motet_trace
