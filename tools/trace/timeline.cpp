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

timeline::timeline(const trace_reader& trace, wishes wanted) : trace_(trace), wanted_(wanted) {
  for (std::size_t i = 0; i < trace.rings().size(); ++i) learn_names_and_posts(i);
  std::sort(posts_.begin(), posts_.end(), [](const posted& a, const posted& b) {
    return std::tie(a.fiber, a.when) < std::tie(b.fiber, b.when);
  });
  threads_.resize(trace.rings().size());
  for (std::size_t i = 0; i < threads_.size(); ++i) thread_reading(*this, i).read();
}

void timeline::learn_names_and_posts(std::size_t thread) {
  const ring& from = trace_.rings()[thread];
  std::unordered_map<std::uint64_t, std::uint64_t> guests;  // that run as fibers of this thread
  std::uint64_t running = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const record each = from.at(i);
    const std::uint64_t fiber = from.fibers | each.number();
    switch (each.what) {
      case format::kind::park:
      case format::kind::snooze:
      case format::kind::end:
      case format::kind::run:
        running = each.number() == 0 ? 0 : fiber;
        break;
      case format::kind::arrive:
        guests[running] = each.second;
        break;
      case format::kind::leave:
        guests.erase(running);
        break;
      case format::kind::spin:
      case format::kind::site:
        names_[fiber].site = each.detail();
        break;
      case format::kind::name:
        names_[fiber].name = each.detail();
        break;
      case format::kind::post: {
        const auto guest = guests.find(running);
        const std::uint64_t by = guest == guests.end() ? running : guest->second;
        posts_.push_back({each.second, each.when, by, thread});
        break;
      }
      default:
        break;
    }
  }
}

const timeline::posted* timeline::post_to(std::uint64_t fiber, std::int64_t since,
                                          std::int64_t until) const noexcept {
  const auto after = std::partition_point(posts_.begin(), posts_.end(), [&](const posted& each) {
    return std::tie(each.fiber, each.when) <= std::tie(fiber, until);
  });
  if (after == posts_.begin()) return nullptr;
  const posted& last = *std::prev(after);
  return last.fiber == fiber && last.when >= since && last.by != 0 ? &last : nullptr;
}

std::string timeline::label(std::uint64_t fiber, std::uint32_t its_name) const {
  std::string text = "fiber " + std::to_string(fiber);
  const auto known = names_.find(fiber);
  if (known == names_.end()) return text;
  const std::string_view name = trace_.text(its_name == 0 ? known->second.name : its_name);
  const std::string_view site = file_of(trace_.text(known->second.site));
  if (name.empty() && site.empty()) return text;
  text += " (";
  text += name;
  if (!name.empty() && !site.empty()) text += ", ";
  if (!site.empty()) (text += "spun at ") += site;
  return text + ')';
}

std::string timeline::short_label(std::uint64_t fiber, std::uint32_t its_name) const {
  const auto known = names_.find(fiber);
  const std::uint32_t last = known == names_.end() ? 0 : known->second.name;
  const std::string_view name = trace_.text(its_name == 0 ? last : its_name);
  if (name.empty()) return label(fiber);
  std::string text(name);
  const std::string_view site =
      known == names_.end() ? "" : file_of(trace_.text(known->second.site));
  if (!site.empty()) ((text += " (") += site) += ')';
  return text;
}

std::string timeline::kind_of(std::uint64_t fiber) const {
  const auto known = names_.find(fiber);
  if (known == names_.end()) return "fibers of which nothing is known";
  const std::string_view site = file_of(trace_.text(known->second.site));
  if (site.empty()) return std::string(trace_.text(known->second.name));
  return "spun at " + std::string(site);
}

}  // namespace motet_trace
