// SPDX-License-Identifier: MIT
// See events.hpp.
#include "events.hpp"

#include <algorithm>
#include <iomanip>
#include <motet/motet.hpp>
#include <ostream>
#include <utility>

#include "this_thread.hpp"

namespace cached_fetch {

struct event_log::node {
  event what;
  node* older;
};

event_log::~event_log() {
  for (node* each = newest_.load(); each != nullptr;) delete std::exchange(each, each->older);
}

void event_log::push(event&& what) {
  node* fresh = new node{std::move(what), newest_.load(std::memory_order_relaxed)};
  while (!newest_.compare_exchange_weak(fresh->older, fresh, std::memory_order_acq_rel)) {
  }
}

void event_log::add(const char* what, std::string_view key, std::string_view outcome,
                    std::uint64_t parent) {
  if (!on_) return;
  push({steady::now(), thread_name(), motet::current().id(), what, std::string(key),
        std::string(outcome), parent});
}

void event_log::add_for(std::uint64_t fiber, const char* what, std::string_view key) {
  if (!on_) return;
  push({steady::now(), thread_name(), fiber, what, std::string(key)});
}

std::vector<event> event_log::all() const {
  std::vector<event> found;
  for (const node* each = newest_.load(std::memory_order_acquire); each != nullptr;
       each = each->older) {
    found.push_back(each->what);
  }
  std::reverse(found.begin(), found.end());
  return found;
}

void write_text(std::ostream& out, std::string_view text) {
  out << '"';
  for (const char each : text) {
    const auto code = static_cast<unsigned char>(each);
    if (each == '"' || each == '\\') {
      out << '\\' << each;
    } else if (code < 0x20 || code >= 0x7f) {
      out << "\\u00" << std::hex << std::setw(2) << std::setfill('0') << unsigned{code} << std::dec;
    } else {
      out << each;
    }
  }
  out << '"';
}

void write_events(std::ostream& out, const event_log& log) {
  for (const event& each : log.all()) {
    const auto t = std::chrono::duration_cast<std::chrono::microseconds>(each.at - log.begun());
    out << "{\"t_us\":" << t.count() << ",\"thread\":";
    write_text(out, each.thread);
    out << ",\"fiber\":" << each.fiber << ",\"ev\":\"" << each.what << "\",\"key\":";
    write_text(out, each.key);
    if (each.parent != 0) out << ",\"parent\":" << each.parent;
    if (!each.outcome.empty()) {
      out << ",\"outcome\":";
      write_text(out, each.outcome);
    }
    out << "}\n";
  }
}

logged_life::logged_life(event_log& log, std::string_view key, std::uint64_t parent)
    : log_(log), key_(key) {
  begin_stretch();
  log_.add("start", key_, {}, parent);
}

logged_life::~logged_life() {
  log_.add("finish", key_, outcome_);
  end_stretch();
}

}  // namespace cached_fetch
