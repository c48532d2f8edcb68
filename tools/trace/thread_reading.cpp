// SPDX-License-Identifier: MIT
// See thread_reading.hpp.
#include "thread_reading.hpp"

#include <algorithm>
#include <utility>

namespace motet_trace {

namespace {

using format::kind;

/// The number of a thread's longest delays to keep: one long turn may cause many.
constexpr std::size_t most_delays = 4096;

bool shorter(const delay& a, const delay& b) noexcept {
  return a.length() > b.length();  // the shortest is on top of the heap
}

}  // namespace

void thread_reading::read() {
  line_.thread = from_.thread;
  line_.turns.reserve(from_.size() / 2);
  if (from_.size() == 0) return;
  line_.begin = line_.end = from_.at(0).when;
  for (std::size_t i = 0; i < from_.size(); ++i) {
    record each = from_.at(i);
    each.when = line_.end = std::max(each.when, line_.end);  // a broken one may go backwards
    take(each);
  }
  if (running_ != 0) end_turn(line_.end, kind::none, 0);
  fibers_.each([&](const fiber_state& each) {
    if (each.parked_at != never) line_.waiting.push_back(each);
  });
}

void thread_reading::take(const record& each) {
  switch (each.what) {
    case kind::park:
    case kind::snooze:
    case kind::end:
      return switch_from(each);
    case kind::run:
      return begin_turn(each.number(), each.when);
    case kind::subject:
    case kind::object:
    case kind::lock:
      return note_subject(each);
    case kind::spin:
      return spin(each);
    case kind::wake:
      return wake(each);
    case kind::cancel:
      ++line_.interrupted;
      fibers_.of(each.number()).interrupted = true;
      return;
    case kind::arrive:
    case kind::leave:
      return come_or_go(each);
    case kind::sleep:
      asleep_from_ = each.when;
      return;
    case kind::awake:
      if (asleep_from_ == never) return;
      ++line_.sleeps;
      line_.asleep += each.when - std::exchange(asleep_from_, never);
      return;
    case kind::poll:
      return note_poll(each);
    case kind::post:
      fresh_ = false;
      return;
    case kind::name:
      fibers_.of(each.number()).name = each.detail();
      if (each.number() == running_ && guest_ == 0) name_ = each.detail();
      return;
    case kind::none:
    case kind::site:
      return;
  }
}

void thread_reading::end_turn(std::int64_t when, kind how, std::uint32_t what) {
  line_.turns.push_back({turn_from_, when, who_runs(), name_, what, how});
  line_.running += when - turn_from_;
}

void thread_reading::switch_from(const record& each) {
  parked_ = 0;
  if (running_ != 0) {
    const std::uint32_t what = each.what == kind::park ? each.detail() : 0;
    end_turn(each.when, each.what, what);
    fiber_state& left = fibers_.of(running_);
    if (each.what == kind::park) {
      parked_ = running_;
      left.parked_at = each.when;
      left.what = what;
      left.subject = 0;
      left.of_object = left.of_lock = false;
    } else if (each.what == kind::snooze) {
      left.waker = 0;
      left.woken_at = each.when;
      left.gave_way = true;
      left.late_us = 0;
      left.by = format::cause::fiber;
    } else {
      ++line_.ended;
    }
  }
  running_ = guest_ = 0;
  if (each.number() != 0) begin_turn(each.number(), each.when);
}

void thread_reading::begin_turn(std::uint64_t number, std::int64_t when) {
  if (running_ != 0) end_turn(when, kind::end, 0);  // it continues as another fiber
  running_ = number;
  turn_from_ = when;
  fresh_ = true;
  fiber_state& fiber = fibers_.of(number);
  guest_ = fiber.guest;
  name_ = guest_ == 0 ? fiber.name : 0;
  fiber.parked_at = never;
  fiber.interrupted = false;
  if (fiber.woken_at == never) return;
  note_delay(fiber, when);
  if (all_.wanted_.arrows && fiber.waker != 0)
    all_.arrows_.push_back({fiber.waker_thread, fiber.waker_at, which_, when});
  fiber.woken_at = never;
  fiber.gave_way = false;
}

void thread_reading::note_delay(const fiber_state& fiber, std::int64_t when) {
  const std::int64_t due = fiber.woken_at - std::int64_t{fiber.late_us} * 1000;
  const delay found{due, when, who_runs(), name_, fiber.by, fiber.gave_way};
  std::vector<delay>& kept = line_.delays;
  if (kept.size() == most_delays) {
    if (found.length() <= kept.front().length()) return;
    std::pop_heap(kept.begin(), kept.end(), shorter);
    kept.pop_back();
  }
  kept.push_back(found);
  std::push_heap(kept.begin(), kept.end(), shorter);
}

void thread_reading::note_subject(const record& each) {
  if (parked_ == 0) return;
  fiber_state& waiting = fibers_.of(parked_);
  waiting.subject = each.second;
  waiting.of_lock = each.what == kind::lock;
  waiting.of_object = waiting.of_lock || each.what == kind::object;
}

/// A lock passes from the fiber that wakes to the one that is woken.
void thread_reading::hand_over(const fiber_state& woken, std::int64_t when) {
  if (!woken.of_object || woken.parked_at == never) return;
  contention& about = all_.objects_[woken.subject];
  about.what = woken.what;
  const std::int64_t length = when - woken.parked_at;
  ++about.waits;
  about.waited = length > INT64_MAX - about.waited ? INT64_MAX : about.waited + length;
  about.longest = std::max(about.longest, length);
  const bool given_up = woken.interrupted || woken.by == format::cause::timer;
  if (!woken.of_lock || given_up) return;
  // The fiber that gives it up has had it since the wait began, or since it was given it.
  const std::int64_t kept = when - std::max(about.owned_from, woken.parked_at);
  if (woken.waker != 0 && kept > about.kept) {
    about.kept = kept;
    about.keeper = woken.waker;
  }
  about.owned_from = when;
}

void thread_reading::wake(const record& each) {
  fiber_state& woken = fibers_.of(each.number());
  woken.by = static_cast<format::cause>(each.detail() & 15);
  woken.late_us = each.detail() >> 4;
  woken.woken_at = each.when;
  note_waker(woken, each.when);
  const auto cause = static_cast<std::size_t>(woken.by);
  if (cause < line_.wakes.size()) ++line_.wakes[cause];
  hand_over(woken, each.when);
  woken.parked_at = never;
}

void thread_reading::note_waker(fiber_state& woken, std::int64_t when) {
  woken.waker = 0;
  if (woken.by == format::cause::fiber) {
    fresh_ = false;
    if (running_ != 0) woken.waker = who_runs();
    woken.waker_thread = which_;
    woken.waker_at = when;
  } else if (woken.by == format::cause::mail) {
    const auto* left = all_.post_to(id_of(woken.number), woken.parked_at, when);
    if (left == nullptr) return;
    woken.waker = left->by;
    woken.waker_thread = left->thread;
    woken.waker_at = left->when;
  }
}

void thread_reading::spin(const record& each) {
  fresh_ = false;
  ++line_.spun;
  fiber_state& fiber = fibers_.of(each.number());
  fiber = {};
  fiber.number = each.number();
  fiber.woken_at = each.when;
  note_waker(fiber, each.when);
}

/// The poll of a fiber that leaves is no part of the next one's turn.
void thread_reading::note_poll(const record& each) {
  ++line_.polls;
  const bool by_who_runs = each.number() != 0;
  if (running_ != 0 && fresh_ && !by_who_runs) turn_from_ = each.when;
}

/// A traveller runs in the turn of the fiber whose body it is here.
void thread_reading::come_or_go(const record& each) {
  const std::uint64_t guest = each.what == kind::arrive ? each.second : 0;
  if (running_ == 0 || guest == guest_ || each.second == id_of(running_)) return;
  end_turn(each.when, kind::leave, 0);
  fiber_state& host = fibers_.of(running_);
  host.guest = guest_ = guest;
  name_ = guest == 0 ? host.name : 0;
  turn_from_ = each.when;
}

}  // namespace motet_trace
