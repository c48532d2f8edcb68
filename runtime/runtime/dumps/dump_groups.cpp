// SPDX-License-Identifier: MIT
// The dump of a crowd: all fibers that were spun at one place have one line. See
// runtime/dumps/dump.hpp.
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <ostream>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/thread_state.hpp"
#include "runtime/dumps/dump.hpp"
#include "runtime/dumps/fiber_frames.hpp"
#include "runtime/dumps/json_text.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// What some fibers of a group do: a state, and what they wait for.
struct occupation {
  std::string_view state, wait;
  std::size_t fibers = 1;
};

struct fiber_group {
  std::size_t fibers = 0;
  std::vector<occupation> does;
  const control_block* longest = nullptr;  // the fiber that waits longest, or else the first

  void add(const control_block& fiber) {
    ++fibers;
    const wait_record* wait = wait_of(fiber);
    const std::string_view state = doing(fiber), what = wait == nullptr ? "" : wait->description;
    const auto same = std::find_if(does.begin(), does.end(), [&](const occupation& each) {
      return each.state == state && each.wait == what;
    });
    if (same == does.end()) {
      does.push_back({state, what});
    } else {
      ++same->fibers;
    }
    const wait_record* before = longest == nullptr ? nullptr : wait_of(*longest);
    const bool longer = wait != nullptr && (before == nullptr || wait->start < before->start);
    if (longest == nullptr || longer) longest = &fiber;
  }
};

using place = std::pair<std::string_view, std::uint32_t>;

/// The fibers in groups, the largest first.
std::vector<std::pair<place, fiber_group>> groups_of(thread_state& thread) {
  std::map<place, fiber_group> found;
  auto& fibers = thread.fibers();
  for (control_block* fiber = fibers.front(); fiber != nullptr; fiber = fibers.next(*fiber)) {
    const auto& site = fiber->site;
    found[fiber->is_main ? place{} : place{site.file, site.line}].add(*fiber);
  }
  std::vector<std::pair<place, fiber_group>> sorted(found.begin(), found.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::tie(b.second.fibers, a.first) < std::tie(a.second.fibers, b.first);
  });
  return sorted;
}

long long longest_wait(const fiber_group& of, clock::time_point present) {
  const wait_record* wait = wait_of(*of.longest);
  return wait == nullptr ? 0 : waited(*wait, present);
}

void write_line(std::ostream& out, const place& at, const fiber_group& group,
                clock::time_point present) {
  out << group.fibers << (group.fibers == 1 ? " fiber" : " fibers");
  if (at.first.empty()) {
    out << ", the main one: ";
  } else {
    out << " spun at " << at.first << ':' << at.second << ": ";
  }
  const char* before = "";
  for (const occupation& each : group.does) {
    out << std::exchange(before, ", ") << each.fibers << ' ' << each.state;
    if (!each.wait.empty()) out << " (" << each.wait << ')';
  }
  if (wait_of(*group.longest) != nullptr) {
    out << "; the longest wait " << longest_wait(group, present) << " ms";
  }
  out << '\n';
}

void write_object(std::ostream& out, const place& at, const fiber_group& group,
                  clock::time_point present) {
  out << "{\"fibers\": " << group.fibers;
  if (!at.first.empty()) out << ", \"site\": " << json_site{at.first, at.second};
  out << ", \"does\": [";
  const char* before = "";
  for (const occupation& each : group.does) {
    out << std::exchange(before, ", ") << "{\"fibers\": " << each.fibers
        << ", \"state\": " << json_string{each.state};
    if (!each.wait.empty()) out << ", \"wait\": " << json_string{each.wait};
    out << '}';
  }
  out << "], \"longest_ms\": " << longest_wait(group, present);
}

}  // namespace

void dump_groups(thread_state& thread, std::ostream& out, const dump_options& how) {
  const clock::time_point present = thread.kernel().now();
  frame_names names;
  std::array<void*, most_frames> room;
  const char* before = "";
  for (const auto& [at, group] : groups_of(thread)) {
    const auto frames = how.stacks ? frames_of(thread, *group.longest, room) : std::span<void*>();
    if (how.json) {
      out << std::exchange(before, ",\n");
      write_object(out, at, group, present);
      if (how.stacks) out << ", \"stack\": " << json_frames{frames, names};
      out << '}';
    } else {
      write_line(out, at, group, present);
      for (const void* each : frames) out << "  " << names.of(each) << '\n';
    }
  }
}

}}}  // namespace motet::MOTET_ABI::detail
