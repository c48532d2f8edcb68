// SPDX-License-Identifier: MIT
// See observe/recording/recorder.hpp.
#include "observe/recording/recorder.hpp"

#include <algorithm>
#include <chrono>
#include <motet/detail/core/cold_part.hpp>
#include <motet/detail/core/wait_record.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

using trace::kind;

recorder::recorder(trace_file& file)
    : file_(&file),
      ring_(file.take_ring()),
      records_(reinterpret_cast<trace::record*>(&ring_ + 1)),
      mask_(file.records() - 1),
      began_ticks_(file.began_ticks()) {}

recorder::~recorder() {
  if (file_ != nullptr) file_->give_back(ring_);
}

void recorder::begin(const control_block& main) noexcept {
  ring_.fibers = main.id & ~trace::number_mask;
  note_run(main);
}

/// A text is known again by its address: what is shown here are literals.
std::uint32_t recorder::offset_of(const char* text, unsigned line) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(text);
  known_text& entry = texts_[(address ^ address >> 7 ^ line) % known_texts];
  if (entry.text != text || entry.line != line) {
    const std::uint32_t offset = line == 0 ? file_->texts().offset_of(text)
                                           : file_->texts().offset_of(call_site{text, line});
    entry = {text, line, offset};
  }
  return entry.offset;
}

void recorder::note_switch(const control_block& previous, const control_block* next) noexcept {
  cause_ = trace::cause::fiber;
  nothing_runs_ = next == nullptr;
  if (next != nullptr) introduce(*next);
  const std::uint64_t number = next == nullptr ? 0 : number_of(*next);
  const fiber_state state = previous.state.load(std::memory_order_relaxed);
  if (state == fiber_state::runnable) {
    write(kind::snooze, number);
  } else if (state == fiber_state::waiting) {
    note_wait(previous, number);
  } else {
    const auto end = static_cast<std::uint64_t>(previous.ended_by);
    write(kind::end, end << trace::number_bits | number);
  }
}

void recorder::note_wait(const control_block& previous, std::uint64_t next) noexcept {
  const wait_record& wait = *previous.wait;
  const std::uint64_t text = offset_of(wait.description, 0);
  write(kind::park, text << trace::number_bits | next);
  if (wait.subject >= 0 || wait.of_object()) {
    const kind form = wait.for_lock()    ? kind::lock
                      : wait.of_object() ? kind::object
                                         : kind::subject;
    write(form, static_cast<std::uint64_t>(wait.subject));
  }
}

void recorder::timer_is_late(clock::duration late) noexcept {
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(late).count();
  late_us_ = static_cast<std::uint32_t>(std::clamp<std::int64_t>(us, 0, trace::latest));
  cause_ = trace::cause::timer;
}

/// A fiber that has not started is in no wait.
void recorder::note_wake(const control_block& fiber) noexcept {
  if (fiber.wait == nullptr) {
    fibers_[number_of(fiber) % known_fibers] = {number_of(fiber), record_count_};
    write(kind::spin, with_detail(fiber, offset_of(fiber.site.file, fiber.site.line)));
    if (fiber.named) note_name(fiber);
    return;
  }
  const std::uint32_t late = cause_ == trace::cause::timer ? late_us_ : 0;
  write(kind::wake, with_detail(fiber, trace::wake_detail(cause_, late)));
}

void recorder::tell(const control_block& fiber) noexcept {
  fibers_[number_of(fiber) % known_fibers] = {number_of(fiber), record_count_};
  if (!fiber.is_main && fiber.site.line != 0) {
    write(kind::site, with_detail(fiber, offset_of(fiber.site.file, fiber.site.line)));
  }
  if (fiber.named || fiber.is_main) note_name(fiber);
}

void recorder::note_name(const control_block& fiber) noexcept {
  std::uint32_t name = 0;
  if (fiber.named) {
    name = file_->texts().offset_of(cold_if_any(fiber)->name, trace_texts::kind::name);
  } else if (fiber.is_main) {
    name = offset_of("the main fiber", 0);
  }
  write(kind::name, with_detail(fiber, name));  // 0 if it has no name, or the table is full
}

void recorder::note_poll(std::size_t runnable, bool by_itself) noexcept {
  cause_ = trace::cause::fiber;
  const auto limit = (std::uint64_t{1} << (64 - trace::number_bits)) - 1;
  const std::uint64_t length = std::min<std::uint64_t>(runnable, limit);
  write(kind::poll, length << trace::number_bits | (by_itself ? 1U : 0U));
}

}}}  // namespace motet::MOTET_ABI::detail
