// SPDX-License-Identifier: MIT
// See report.hpp.
#include "report.hpp"

#include <motet/motet.hpp>
#include <stdexcept>

namespace cached_fetch {

using namespace std::chrono_literals;

trace::trace(const event_log& log, const std::string& key, steady::time_point since) {
  for (event& each : log.all()) {
    if (each.key == key && each.at >= since) events_.push_back(std::move(each));
  }
}

std::size_t trace::count(std::string_view what) const {
  return static_cast<std::size_t>(std::count_if(
      events_.begin(), events_.end(), [&](const event& each) { return each.what == what; }));
}

const event* trace::find(std::string_view what) const {
  const auto found = std::find_if(events_.begin(), events_.end(),
                                  [&](const event& each) { return each.what == what; });
  return found == events_.end() ? nullptr : &*found;
}

const event* trace::find_last(std::string_view what) const {
  const auto found = std::find_if(events_.rbegin(), events_.rend(),
                                  [&](const event& each) { return each.what == what; });
  return found == events_.rend() ? nullptr : &*found;
}

steady::time_point trace::at(std::string_view what) const {
  const event* found = find(what);
  if (found == nullptr) throw std::runtime_error("no event " + std::string(what));
  return found->at;
}

const event& trace::of_fiber_of(std::string_view what, std::string_view edge) const {
  const event* its = find(what);
  if (its == nullptr) throw std::runtime_error("no event " + std::string(what));
  for (const event& each : events_) {
    if (each.fiber == its->fiber && each.what == edge) return each;
  }
  throw std::runtime_error("no " + std::string(edge) + " of the fiber of " + std::string(what));
}

const event& trace::finish_as(std::string_view outcome) const {
  for (const event& each : events_) {
    if (std::string_view(each.what) == "finish" && each.outcome == outcome) return each;
  }
  throw std::runtime_error("nothing finished as " + std::string(outcome));
}

std::map<std::string, trace> by_keys(const event_log& log) {
  std::map<std::string, trace> found;
  for (event& each : log.all()) found[each.key].add(each);
  return found;
}

steady::time_point await_event(const event_log& log, const std::string& key, const char* what,
                               std::size_t times) {
  for (const auto give_up = steady::now() + 10s; steady::now() < give_up;) {
    const trace so_far(log, key);
    if (so_far.count(what) >= times) return so_far.find_last(what)->at;
    motet::sleep_for(500us);
  }
  throw std::runtime_error("there never was an event " + std::string(what) + " of " + key);
}

}  // namespace cached_fetch
