// SPDX-License-Identifier: MIT
// Writes a thread's events to its ring: see core/recording/trace_format.hpp. It exists only while
// the thread records; then the countdown to the next poll is held at 1, so that each switch calls
// it, and a thread that does not record pays nothing per switch.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <motet/base/call_site.hpp>
#include <motet/base/clock.hpp>
#include <motet/detail/core/control_block.hpp>

#include "core/recording/trace_file.hpp"
#include "platform/ticks.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

class recorder {
 public:
  /// Throws: as trace_file::take_ring().
  explicit recorder(trace_file& file);
  recorder(const recorder&) = delete;
  recorder& operator=(const recorder&) = delete;
  ~recorder();

  /// In a forked child: the ring is the parent's.
  void abandon() noexcept { file_ = nullptr; }
  /// `main` is the first fiber of the thread.
  void begin(const control_block& main) noexcept;

  /// The thread switched from `previous` to `next`, or to no fiber yet (null).
  void note_switch(const control_block& previous, const control_block* next) noexcept;
  /// After a switch to no fiber: the fiber that runs next, or null if there is still none.
  void note_next(const control_block* next) noexcept {
    if (next == nullptr || !nothing_runs_) return;
    nothing_runs_ = false;
    note_run(*next);
  }
  /// `fiber` runs from here on: the thread's first, or the running fiber under a new identity.
  void note_run(const control_block& fiber) noexcept {
    introduce(fiber);
    write(trace::kind::run, number_of(fiber));
  }
  /// `fiber` becomes runnable.
  void note_wake(const control_block& fiber) noexcept;
  /// The cause of the wake-ups that follow.
  void woken_by(trace::cause cause) noexcept { cause_ = cause; }
  /// The next fiber is woken by a timer that fires so long after its time.
  void timer_is_late(clock::duration late) noexcept;

  void note_name(const control_block& fiber) noexcept;
  void note_interrupt(const control_block& fiber, interrupt reason) noexcept {
    write(trace::kind::cancel, with_detail(fiber, reason));
  }
  /// An event that belongs to no fiber of this thread.
  void note(trace::kind event, std::uint64_t second = 0) noexcept { write(event, second); }
  /// `by_itself`: the fiber that runs has looked, and goes on.
  void note_poll(std::size_t runnable, bool by_itself) noexcept;

 private:
  static constexpr std::size_t known_texts = 64, known_fibers = 1024;

  struct known_text {
    const char* text = nullptr;
    unsigned line = 0;
    std::uint32_t place = 0;
  };
  struct known_fiber {
    std::uint64_t number = 0;  // 0: none
    std::uint64_t told_at = 0;
  };

  static std::uint64_t number_of(const control_block& fiber) noexcept {
    return fiber.id & trace::number_mask;
  }
  static std::uint64_t with_detail(const control_block& fiber, std::uint64_t detail) noexcept {
    return detail << trace::number_bits | number_of(fiber);
  }
  [[gnu::always_inline]] void write(trace::kind event, std::uint64_t second) noexcept {
    trace::record& record = records_[record_count_ & mask_];
    record.first.store((ticks() - began_ticks_) << 8 | static_cast<std::uint64_t>(event),
                       std::memory_order_relaxed);
    record.second.store(second, std::memory_order_relaxed);
    ring_.record_count.store(++record_count_, std::memory_order_release);
  }
  std::uint32_t place_of(const char* text, unsigned line) noexcept;
  void note_wait(const control_block& previous, std::uint64_t next) noexcept;
  /// Sees to it that a reader who has only the last records knows what `fiber` is.
  void introduce(const control_block& fiber) noexcept {
    const std::uint64_t number = number_of(fiber);
    const known_fiber& entry = fibers_[number % known_fibers];
    if (entry.number != number || record_count_ - entry.told_at > mask_ / 8) tell(fiber);
  }
  void tell(const control_block& fiber) noexcept;

  trace_file* file_;
  trace::ring_head& ring_;
  trace::record* const records_;
  const std::uint64_t mask_;
  const std::uint64_t began_ticks_;
  std::uint64_t record_count_ = 0;
  trace::cause cause_ = trace::cause::fiber;
  std::uint32_t late_us_ = 0;
  bool nothing_runs_ = false;
  std::array<known_text, known_texts> texts_{};
  std::array<known_fiber, known_fibers> fibers_{};
};

/// The running fiber wakes `fiber` of another thread. Records that, if this thread records.
void note_post(const control_block& fiber) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
