// SPDX-License-Identifier: MIT
// See thread_reading.hpp.
#include "thread_reading.hpp"

#include <algorithm>
#include <utility>

namespace motet_trace {

namespace {

using format::kind;

/// The number of a thread's longest delays to keep: one long slice may cause many.
constexpr std::size_t most_delays = 4096;

bool shorter(const delay& a, const delay& b) noexcept {
  return a.length() > b.length();  // the shortest is on top of the heap
}

}  // namespace

void thread_reading::read() {
  line_.thread = ring_.thread;
  line_.slices.reserve(ring_.size() / 2);
  if (ring_.size() == 0) return;
  line_.begin = line_.end = ring_.at(0).time;
  for (std::size_t i = 0; i < ring_.size(); ++i) {
    record event = ring_.at(i);
    event.time = line_.end = std::max(event.time, line_.end);  // a broken one may go backwards
    process(event);
  }
  if (runner_ != 0) end_slice(line_.end, kind::none, 0);
  fibers_.each([&](const fiber_state& fiber) {
    if (fiber.parked_at != no_time) line_.waiters.push_back(fiber);
  });
}

void thread_reading::process(const record& event) {
  switch (event.type) {
    case kind::park:
    case kind::snooze:
    case kind::end:
      return switch_from(event);
    case kind::run:
      return begin_slice(event.number(), event.time);
    case kind::subject:
    case kind::object:
    case kind::lock:
      return note_subject(event);
    case kind::spin:
      return spin(event);
    case kind::wake:
      return wake(event);
    case kind::cancel:
      ++line_.interruptions;
      fibers_.of(event.number()).interrupted = true;
      return;
    case kind::arrive:
    case kind::leave:
      return come_or_go(event);
    case kind::sleep:
      asleep_from_ = event.time;
      return;
    case kind::awake:
      if (asleep_from_ == no_time) return;
      ++line_.sleeps;
      line_.asleep += event.time - std::exchange(asleep_from_, no_time);
      return;
    case kind::poll:
      return note_poll(event);
    case kind::post:
      fresh_ = false;
      return;
    case kind::name:
      fibers_.of(event.number()).name = event.detail();
      if (event.number() == runner_ && guest_ == 0) name_ = event.detail();
      return;
    case kind::none:
    case kind::site:
      return;
  }
}

void thread_reading::end_slice(std::int64_t time, kind ending, std::uint32_t wait_text) {
  line_.slices.push_back({slice_from_, time, who_runs(), name_, wait_text, ending});
  line_.run_time += time - slice_from_;
}

void thread_reading::switch_from(const record& event) {
  parked_fiber_ = 0;
  if (runner_ != 0) {
    const std::uint32_t wait_text = event.type == kind::park ? event.detail() : 0;
    end_slice(event.time, event.type, wait_text);
    fiber_state& fiber = fibers_.of(runner_);
    if (event.type == kind::park) {
      parked_fiber_ = runner_;
      fiber.parked_at = event.time;
      fiber.wait_text = wait_text;
      fiber.subject = 0;
      fiber.of_object = fiber.of_lock = false;
    } else if (event.type == kind::snooze) {
      fiber.waker = 0;
      fiber.woken_at = event.time;
      fiber.gave_way = true;
      fiber.late_us = 0;
      fiber.cause = format::cause::fiber;
    } else {
      ++line_.ends;
    }
  }
  runner_ = guest_ = 0;
  if (event.number() != 0) begin_slice(event.number(), event.time);
}

void thread_reading::begin_slice(std::uint64_t number, std::int64_t time) {
  if (runner_ != 0) end_slice(time, kind::end, 0);  // it continues as another fiber
  runner_ = number;
  slice_from_ = time;
  fresh_ = true;
  fiber_state& fiber = fibers_.of(number);
  guest_ = fiber.guest;
  name_ = guest_ == 0 ? fiber.name : 0;
  fiber.parked_at = no_time;
  fiber.interrupted = false;
  if (fiber.woken_at == no_time) return;
  note_delay(fiber, time);
  if (history_.wishes_.arrows && fiber.waker != 0)
    history_.arrows_.push_back({fiber.waker_thread, fiber.waker_at, thread_, time});
  fiber.woken_at = no_time;
  fiber.gave_way = false;
}

void thread_reading::note_delay(const fiber_state& fiber, std::int64_t time) {
  const std::int64_t due = fiber.woken_at - std::int64_t{fiber.late_us} * 1000;
  const delay entry{due, time, who_runs(), name_, fiber.cause, fiber.gave_way};
  std::vector<delay>& delays = line_.delays;
  if (delays.size() == most_delays) {
    if (entry.length() <= delays.front().length()) return;
    std::pop_heap(delays.begin(), delays.end(), shorter);
    delays.pop_back();
  }
  delays.push_back(entry);
  std::push_heap(delays.begin(), delays.end(), shorter);
}

void thread_reading::note_subject(const record& event) {
  if (parked_fiber_ == 0) return;
  fiber_state& fiber = fibers_.of(parked_fiber_);
  fiber.subject = event.second;
  fiber.of_lock = event.type == kind::lock;
  fiber.of_object = fiber.of_lock || event.type == kind::object;
}

/// A lock passes from the fiber that wakes to the one that is woken.
void thread_reading::hand_over(const fiber_state& fiber, std::int64_t time) {
  if (!fiber.of_object || fiber.parked_at == no_time) return;
  contention& object = history_.objects_[fiber.subject];
  object.wait_text = fiber.wait_text;
  const std::int64_t length = time - fiber.parked_at;
  ++object.waits;
  object.wait_time = length > INT64_MAX - object.wait_time ? INT64_MAX : object.wait_time + length;
  object.longest = std::max(object.longest, length);
  const bool given_up = fiber.interrupted || fiber.cause == format::cause::timer;
  if (!fiber.of_lock || given_up) return;
  // The fiber that gives it up has had it since the wait began, or since it was given it.
  const std::int64_t hold_time = time - std::max(object.owned_from, fiber.parked_at);
  if (fiber.waker != 0 && hold_time > object.hold_time) {
    object.hold_time = hold_time;
    object.keeper = fiber.waker;
  }
  object.owned_from = time;
}

void thread_reading::wake(const record& event) {
  fiber_state& fiber = fibers_.of(event.number());
  fiber.cause = static_cast<format::cause>(event.detail() & 15);
  fiber.late_us = event.detail() >> 4;
  fiber.woken_at = event.time;
  note_waker(fiber, event.time);
  const auto cause = static_cast<std::size_t>(fiber.cause);
  if (cause < line_.wakes.size()) ++line_.wakes[cause];
  hand_over(fiber, event.time);
  fiber.parked_at = no_time;
}

void thread_reading::note_waker(fiber_state& fiber, std::int64_t time) {
  fiber.waker = 0;
  if (fiber.cause == format::cause::fiber) {
    fresh_ = false;
    if (runner_ != 0) fiber.waker = who_runs();
    fiber.waker_thread = thread_;
    fiber.waker_at = time;
  } else if (fiber.cause == format::cause::mail) {
    const auto* post = history_.post_to(id_of(fiber.number), fiber.parked_at, time);
    if (post == nullptr) return;
    fiber.waker = post->poster;
    fiber.waker_thread = post->thread;
    fiber.waker_at = post->time;
  }
}

void thread_reading::spin(const record& event) {
  fresh_ = false;
  ++line_.spins;
  fiber_state& fiber = fibers_.of(event.number());
  fiber = {};
  fiber.number = event.number();
  fiber.woken_at = event.time;
  note_waker(fiber, event.time);
}

/// The poll of a fiber that leaves is no part of the next one's slice.
void thread_reading::note_poll(const record& event) {
  ++line_.polls;
  const bool by_who_runs = event.number() != 0;
  if (runner_ != 0 && fresh_ && !by_who_runs) slice_from_ = event.time;
}

/// A traveller runs in the slice of the fiber whose body it is here.
void thread_reading::come_or_go(const record& event) {
  const std::uint64_t guest = event.type == kind::arrive ? event.second : 0;
  if (runner_ == 0 || guest == guest_ || event.second == id_of(runner_)) return;
  end_slice(event.time, kind::leave, 0);
  fiber_state& host = fibers_.of(runner_);
  host.guest = guest_ = guest;
  name_ = guest == 0 ? host.name : 0;
  slice_from_ = event.time;
}

}  // namespace motet_trace
