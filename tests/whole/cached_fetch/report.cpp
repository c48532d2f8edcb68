// SPDX-License-Identifier: MIT
#include "report.hpp"

#include <motet/motet.hpp>
#include <stdexcept>

namespace fetch_test {

using namespace std::chrono_literals;

trace::trace(const event_log& log, const std::string& key, steady::time_point begin) {
  for (event& entry : log.events()) {
    if (entry.key == key && entry.time >= begin) events_.push_back(std::move(entry));
  }
}

std::size_t trace::count(std::string_view kind) const {
  return static_cast<std::size_t>(std::count_if(
      events_.begin(), events_.end(), [&](const event& entry) { return entry.kind == kind; }));
}

const event* trace::find(std::string_view kind) const {
  const auto result = std::find_if(events_.begin(), events_.end(),
                                   [&](const event& entry) { return entry.kind == kind; });
  return result == events_.end() ? nullptr : &*result;
}

const event* trace::find_last(std::string_view kind) const {
  const auto result = std::find_if(events_.rbegin(), events_.rend(),
                                   [&](const event& entry) { return entry.kind == kind; });
  return result == events_.rend() ? nullptr : &*result;
}

steady::time_point trace::time_of(std::string_view kind) const {
  const event* result = find(kind);
  if (result == nullptr) throw std::runtime_error("no event " + std::string(kind));
  return result->time;
}

const event& trace::edge_of(std::string_view kind, std::string_view edge) const {
  const event* witness = find(kind);
  if (witness == nullptr) throw std::runtime_error("no event " + std::string(kind));
  for (const event& entry : events_) {
    if (entry.fiber == witness->fiber && entry.kind == edge) return entry;
  }
  throw std::runtime_error("no " + std::string(edge) + " of the fiber of " + std::string(kind));
}

const event& trace::finish_as(std::string_view outcome) const {
  for (const event& entry : events_) {
    if (std::string_view(entry.kind) == "finish" && entry.outcome == outcome) return entry;
  }
  throw std::runtime_error("nothing finished as " + std::string(outcome));
}

std::map<std::string, trace> by_keys(const event_log& log) {
  std::map<std::string, trace> result;
  for (event& entry : log.events()) result[entry.key].add(entry);
  return result;
}

steady::time_point await_event(const event_log& log, const std::string& key, const char* kind,
                               std::size_t count) {
  for (const auto end = steady::now() + 10s; steady::now() < end;) {
    const trace story(log, key);
    if (story.count(kind) >= count) return story.find_last(kind)->time;
    motet::sleep_for(500us);
  }
  throw std::runtime_error("there never was an event " + std::string(kind) + " of " + key);
}

}  // namespace fetch_test
