// SPDX-License-Identifier: MIT
// The dump of a crowd: all fibers that were spun at one place have one line. See
// observe/dumps/dump.hpp.
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
#include "observe/dumps/dump.hpp"
#include "observe/dumps/fiber_frames.hpp"
#include "observe/dumps/json_text.hpp"

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
    const std::string_view state = doing(fiber),
                           wait_name = wait == nullptr ? "" : wait->description;
    const auto entry = std::find_if(does.begin(), does.end(), [&](const occupation& candidate) {
      return candidate.state == state && candidate.wait == wait_name;
    });
    if (entry == does.end()) {
      does.push_back({state, wait_name});
    } else {
      ++entry->fibers;
    }
    const wait_record* old_record = longest == nullptr ? nullptr : wait_of(*longest);
    const bool longer =
        wait != nullptr && (old_record == nullptr || wait->start < old_record->start);
    if (longest == nullptr || longer) longest = &fiber;
  }
};

using place = std::pair<std::string_view, std::uint32_t>;

/// The fibers in groups, the largest first.
std::vector<std::pair<place, fiber_group>> groups_of(thread_state& thread) {
  std::map<place, fiber_group> groups;
  auto& fibers = thread.fibers();
  for (control_block* fiber = fibers.front(); fiber != nullptr; fiber = fibers.next(*fiber)) {
    const auto& site = fiber->site;
    groups[fiber->is_main ? place{} : place{site.file, site.line}].add(*fiber);
  }
  std::vector<std::pair<place, fiber_group>> sorted(groups.begin(), groups.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::tie(b.second.fibers, a.first) < std::tie(a.second.fibers, b.first);
  });
  return sorted;
}

long long longest_wait(const fiber_group& group, clock::time_point present) {
  const wait_record* wait = wait_of(*group.longest);
  return wait == nullptr ? 0 : waited(*wait, present);
}

void write_line(std::ostream& output, const place& site, const fiber_group& group,
                clock::time_point present) {
  output << group.fibers << (group.fibers == 1 ? " fiber" : " fibers");
  if (site.first.empty()) {
    output << ", the main one: ";
  } else {
    output << " spun at " << site.first << ':' << site.second << ": ";
  }
  const char* separator = "";
  for (const occupation& activity : group.does) {
    output << std::exchange(separator, ", ") << activity.fibers << ' ' << activity.state;
    if (!activity.wait.empty()) output << " (" << activity.wait << ')';
  }
  if (wait_of(*group.longest) != nullptr) {
    output << "; the longest wait " << longest_wait(group, present) << " ms";
  }
  output << '\n';
}

void write_object(std::ostream& output, const place& site, const fiber_group& group,
                  clock::time_point present) {
  output << "{\"fibers\": " << group.fibers;
  if (!site.first.empty()) output << ", \"site\": " << json_site{site.first, site.second};
  output << ", \"does\": [";
  const char* separator = "";
  for (const occupation& activity : group.does) {
    output << std::exchange(separator, ", ") << "{\"fibers\": " << activity.fibers
           << ", \"state\": " << json_string{activity.state};
    if (!activity.wait.empty()) output << ", \"wait\": " << json_string{activity.wait};
    output << '}';
  }
  output << "], \"longest_ms\": " << longest_wait(group, present);
}

}  // namespace

void dump_groups(thread_state& thread, std::ostream& output, const dump_options& options) {
  const clock::time_point present = thread.kernel().now();
  frame_names names;
  std::array<void*, most_frames> buffer;
  const char* separator = "";
  for (const auto& [site, group] : groups_of(thread)) {
    const auto frames =
        options.stacks ? frames_of(thread, *group.longest, buffer) : std::span<void*>();
    if (options.json) {
      output << std::exchange(separator, ",\n");
      write_object(output, site, group, present);
      if (options.stacks) output << ", \"stack\": " << json_frames{frames, names};
      output << '}';
    } else {
      write_line(output, site, group, present);
      for (const void* frame : frames) output << "  " << names.of(frame) << '\n';
    }
  }
}

}}}  // namespace motet::MOTET_ABI::detail
