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
/// Less is no news, of a delay, a wait or a slice.
constexpr std::int64_t long_enough = 1'000'000;

/// What had the thread while a fiber was late.
struct blame {
  std::size_t longest = 0;  // of the slices
  std::int64_t share = 0;   // of it, within the delay
  std::size_t slices = 0;
};

std::optional<blame> blame_for(const thread_line& line, const delay& late) {
  const auto& slices = line.slices;
  auto position = std::partition_point(slices.begin(), slices.end(),
                                       [&](const slice& entry) { return entry.end <= late.begin; });
  blame result;
  for (; position != slices.end() && position->begin < late.end; ++position) {
    const std::int64_t share =
        std::min(position->end, late.end) - std::max(position->begin, late.begin);
    ++result.slices;
    if (share <= result.share) continue;
    result.share = share;
    result.longest = static_cast<std::size_t>(position - slices.begin());
  }
  if (result.slices == 0) return std::nullopt;
  return result;
}

/// The delays for which one slice, or nobody in particular, is to blame.
struct grievance {
  const thread_line* line;
  delay worst;
  std::optional<blame> cause;
  std::size_t repetitions = 0;
};

std::string how_it_was_late(const delay& late) {
  if (late.cause == format::cause::timer)
    return "its sleep, or its limit, was over, and it stood behind ";
  return late.gave_way ? "it had given way, and stood behind " : "runnable behind ";
}

std::string sentence(const timeline& history, const grievance& complaint) {
  std::string text = history.label(complaint.worst.fiber, complaint.worst.name) + " was late by " +
                     span(complaint.worst.length()) + ": ";
  if (!complaint.cause) {
    text += "nothing else ran on its thread; the thread had no processor, or was told late";
  } else {
    const slice& culprit = complaint.line->slices[complaint.cause->longest];
    text += how_it_was_late(complaint.worst);
    if (2 * complaint.cause->share >= complaint.worst.length()) {
      text += history.short_label(culprit.fiber, culprit.name) + ", which ran " +
              span(culprit.end - culprit.begin) + " without a switchpoint";
    } else {
      text += counted(complaint.cause->slices, "turn") +
              " of others, none of which was longer than " + span(complaint.cause->share);
    }
  }
  if (complaint.repetitions > 0) text += "; so were " + counted(complaint.repetitions, "other");
  return text + '.';
}

std::vector<grievance> grievances_of(const thread_line& line) {
  std::map<std::size_t, grievance> by_culprit;
  std::vector<grievance> result;
  std::vector<delay> delays = line.delays;
  std::sort(delays.begin(), delays.end(),
            [](const delay& a, const delay& b) { return a.length() > b.length(); });
  for (const delay& late : delays) {
    if (late.length() < long_enough) break;
    const auto cause = blame_for(line, late);
    const bool one_is_to_blame = cause && 2 * cause->share >= late.length();
    const std::size_t culprit =
        one_is_to_blame ? cause->longest : line.slices.size() + (cause ? 1 : 2);
    const auto [position, is_new] = by_culprit.try_emplace(culprit, grievance{&line, late, cause});
    if (!is_new) ++position->second.repetitions;
  }
  for (auto& [culprit, complaint] : by_culprit) result.push_back(complaint);
  return result;
}

/// Writes at most this many lines under a title; without items, nothing.
template <typename T, typename F>
void tell(std::ostream& output, const char* title, const std::vector<T>& items, F line) {
  if (items.empty()) return;
  output << '\n' << title << ":\n";
  for (std::size_t i = 0; i < std::min(items.size(), most_told); ++i)
    output << "  " << line(items[i]) << '\n';
}

}  // namespace

void tell_why_late(const timeline& history, std::ostream& output) {
  std::vector<grievance> complaints;
  for (const thread_line& line : history.threads()) {
    const auto of_thread = grievances_of(line);
    complaints.insert(complaints.end(), of_thread.begin(), of_thread.end());
  }
  std::sort(complaints.begin(), complaints.end(), [](const grievance& a, const grievance& b) {
    return a.worst.length() > b.worst.length();
  });
  tell(output, "Late", complaints,
       [&](const grievance& complaint) { return sentence(history, complaint); });
}

void tell_longest_slices(const timeline& history, std::ostream& output) {
  struct long_slice {
    const thread_line* line;
    const slice* entry;
  };
  std::vector<long_slice> slices;
  for (const thread_line& line : history.threads()) {
    for (const slice& entry : line.slices) {
      if (entry.end - entry.begin >= long_enough) slices.push_back({&line, &entry});
    }
  }
  const auto length = [](const long_slice& item) { return item.entry->end - item.entry->begin; };
  const auto first =
      slices.begin() + static_cast<std::ptrdiff_t>(std::min(slices.size(), most_told));
  std::partial_sort(
      slices.begin(), first, slices.end(),
      [&](const long_slice& a, const long_slice& b) { return length(a) > length(b); });
  tell(output, "Longest turns, without a switchpoint", slices, [&](const long_slice& item) {
    const bool to_the_end = item.entry->ending == format::kind::none;
    return span(length(item)) + ": " + history.label(item.entry->fiber, item.entry->name) +
           ", on thread " + std::to_string(item.line->thread) + ", from " +
           span(item.entry->begin) + " on" + (to_the_end ? ", to the end of the trace" : "");
  });
}

void tell_contention(const timeline& history, std::ostream& output) {
  std::vector<std::pair<std::uint64_t, contention>> objects;
  for (const auto& object : history.objects()) {
    if (object.second.longest >= long_enough) objects.push_back(object);
  }
  std::sort(objects.begin(), objects.end(),
            [](const auto& a, const auto& b) { return a.second.wait_time > b.second.wait_time; });
  tell(output, "Waited for", objects, [&](const auto& item) {
    const contention& object = item.second;
    char address[32];
    std::snprintf(address, sizeof address, " 0x%llx", static_cast<unsigned long long>(item.first));
    std::string text(history.trace().text(object.wait_text));
    text += address;
    text += ": " + counted(object.waits, "wait") + ", " + span(object.wait_time) + " in all, " +
            span(object.longest) + " at the most";
    if (object.keeper != 0)
      text +=
          "; longest kept by " + history.label(object.keeper) + ", for " + span(object.hold_time);
    return text;
  });
}

void tell_waiting(const timeline& history, std::ostream& output) {
  struct waiting {
    std::uint64_t fiber;
    std::int64_t length;
    const fiber_state* state;
  };
  std::vector<waiting> waiters;
  for (std::size_t i = 0; i < history.threads().size(); ++i) {
    const thread_line& line = history.threads()[i];
    for (const fiber_state& fiber : line.waiters)
      waiters.push_back(
          {history.trace().rings()[i].fibers | fiber.number, line.end - fiber.parked_at, &fiber});
  }
  std::sort(waiters.begin(), waiters.end(),
            [](const waiting& a, const waiting& b) { return a.length > b.length; });
  tell(output, "Waiting at the end", waiters, [&](const waiting& item) {
    return history.label(item.fiber) + ": " +
           std::string(history.trace().text(item.state->wait_text)) + ", for " + span(item.length);
  });
}

}  // namespace motet_trace
