// SPDX-License-Identifier: MIT
// See timeline.hpp.
#include "timeline.hpp"

#include <algorithm>
#include <string_view>
#include <tuple>

#include "thread_reading.hpp"

namespace motet_trace {

namespace {

/// The last part of a path is enough for people.
std::string_view file_of(std::string_view site) {
  return site.substr(site.rfind('/') + 1);
}

}  // namespace

timeline::timeline(const trace_reader& trace, wishes choice) : trace_(trace), wishes_(choice) {
  for (std::size_t i = 0; i < trace.rings().size(); ++i) learn_names_and_posts(i);
  std::sort(posts_.begin(), posts_.end(), [](const posted& a, const posted& b) {
    return std::tie(a.fiber, a.time) < std::tie(b.fiber, b.time);
  });
  threads_.resize(trace.rings().size());
  for (std::size_t i = 0; i < threads_.size(); ++i) thread_reading(*this, i).read();
}

void timeline::learn_names_and_posts(std::size_t thread) {
  const ring& source = trace_.rings()[thread];
  std::unordered_map<std::uint64_t, std::uint64_t> guests;  // that run as fibers of this thread
  std::uint64_t runner = 0;
  for (std::size_t i = 0; i < source.size(); ++i) {
    const record event = source.at(i);
    const std::uint64_t fiber = source.fibers | event.number();
    switch (event.type) {
      case format::kind::park:
      case format::kind::snooze:
      case format::kind::end:
      case format::kind::run:
        runner = event.number() == 0 ? 0 : fiber;
        break;
      case format::kind::arrive:
        guests[runner] = event.second;
        break;
      case format::kind::leave:
        guests.erase(runner);
        break;
      case format::kind::spin:
      case format::kind::site:
        names_[fiber].site = event.detail();
        break;
      case format::kind::name:
        names_[fiber].name = event.detail();
        break;
      case format::kind::post: {
        const auto guest = guests.find(runner);
        const std::uint64_t poster = guest == guests.end() ? runner : guest->second;
        posts_.push_back({event.second, event.time, poster, thread});
        break;
      }
      default:
        break;
    }
  }
}

const timeline::posted* timeline::post_to(std::uint64_t fiber, std::int64_t begin,
                                          std::int64_t end) const noexcept {
  const auto position = std::partition_point(posts_.begin(), posts_.end(), [&](const posted& post) {
    return std::tie(post.fiber, post.time) <= std::tie(fiber, end);
  });
  if (position == posts_.begin()) return nullptr;
  const posted& last = *std::prev(position);
  return last.fiber == fiber && last.time >= begin && last.poster != 0 ? &last : nullptr;
}

std::string timeline::label(std::uint64_t fiber, std::uint32_t its_name) const {
  std::string text = "fiber " + std::to_string(fiber);
  const auto entry = names_.find(fiber);
  if (entry == names_.end()) return text;
  const std::string_view name = trace_.text(its_name == 0 ? entry->second.name : its_name);
  const std::string_view site = file_of(trace_.text(entry->second.site));
  if (name.empty() && site.empty()) return text;
  text += " (";
  text += name;
  if (!name.empty() && !site.empty()) text += ", ";
  if (!site.empty()) (text += "spun at ") += site;
  return text + ')';
}

std::string timeline::short_label(std::uint64_t fiber, std::uint32_t its_name) const {
  const auto entry = names_.find(fiber);
  const std::uint32_t last = entry == names_.end() ? 0 : entry->second.name;
  const std::string_view name = trace_.text(its_name == 0 ? last : its_name);
  if (name.empty()) return label(fiber);
  std::string text(name);
  const std::string_view site =
      entry == names_.end() ? "" : file_of(trace_.text(entry->second.site));
  if (!site.empty()) ((text += " (") += site) += ')';
  return text;
}

std::string timeline::kind_of(std::uint64_t fiber) const {
  const auto entry = names_.find(fiber);
  if (entry == names_.end()) return "fibers of which nothing is known";
  const std::string_view site = file_of(trace_.text(entry->second.site));
  if (site.empty()) return std::string(trace_.text(entry->second.name));
  return "spun at " + std::string(site);
}

}  // namespace motet_trace
