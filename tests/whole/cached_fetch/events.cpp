// SPDX-License-Identifier: MIT
#include "events.hpp"

#include <algorithm>
#include <iomanip>
#include <motet/motet.hpp>
#include <ostream>
#include <utility>

#include "this_thread.hpp"

namespace fetch_test {

struct event_log::node {
  event entry;
  node* next;
};

event_log::~event_log() {
  for (node* head = newest_.load(); head != nullptr;) delete std::exchange(head, head->next);
}

void event_log::push(event&& entry) {
  node* head = new node{std::move(entry), newest_.load(std::memory_order_relaxed)};
  while (!newest_.compare_exchange_weak(head->next, head, std::memory_order_acq_rel)) {
  }
}

void event_log::add(const char* kind, std::string_view key, std::string_view outcome,
                    std::uint64_t parent) {
  push({steady::now(), thread_name(), motet::current().id(), kind, std::string(key),
        std::string(outcome), parent});
}

void event_log::add_for(std::uint64_t fiber, const char* kind, std::string_view key) {
  push({steady::now(), thread_name(), fiber, kind, std::string(key)});
}

std::vector<event> event_log::events() const {
  std::vector<event> result;
  for (const node* link = newest_.load(std::memory_order_acquire); link != nullptr;
       link = link->next) {
    result.push_back(link->entry);
  }
  std::reverse(result.begin(), result.end());
  return result;
}

void write_text(std::ostream& out, std::string_view text) {
  out << '"';
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\') {
      out << '\\' << letter;
    } else if (code < 0x20 || code >= 0x7f) {
      out << "\\u00" << std::hex << std::setw(2) << std::setfill('0') << unsigned{code} << std::dec;
    } else {
      out << letter;
    }
  }
  out << '"';
}

void write_events(std::ostream& out, const event_log& log) {
  for (const event& entry : log.events()) {
    const auto t =
        std::chrono::duration_cast<std::chrono::microseconds>(entry.time - log.begin_time());
    out << "{\"t_us\":" << t.count() << ",\"thread\":";
    write_text(out, entry.thread);
    out << ",\"fiber\":" << entry.fiber << ",\"ev\":\"" << entry.kind << "\",\"key\":";
    write_text(out, entry.key);
    if (entry.parent != 0) out << ",\"parent\":" << entry.parent;
    if (!entry.outcome.empty()) {
      out << ",\"outcome\":";
      write_text(out, entry.outcome);
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

}  // namespace fetch_test
