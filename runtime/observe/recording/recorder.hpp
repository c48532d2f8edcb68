// SPDX-License-Identifier: MIT
// Writes a thread's events to its ring: see observe/recording/trace_format.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <motet/base/call_site.hpp>
#include <motet/base/clock.hpp>
#include <motet/detail/core/control_block.hpp>

#include "core/event_recorder.hpp"
#include "observe/recording/trace_file.hpp"
#include "platform/ticks.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

class recorder final : public event_recorder {
 public:
  /// Throws: as trace_file::take_ring().
  explicit recorder(trace_file& file);
  ~recorder() override;

  void abandon() noexcept override { file_ = nullptr; }
  void begin(const control_block& main) noexcept override;
  void note_switch(const control_block& previous, const control_block* next) noexcept override;
  void note_next(const control_block* next) noexcept override {
    if (next == nullptr || !nothing_runs_) return;
    nothing_runs_ = false;
    note_run(*next);
  }
  void note_run(const control_block& fiber) noexcept override {
    introduce(fiber);
    write(trace::kind::run, number_of(fiber));
  }
  void note_wake(const control_block& fiber) noexcept override;
  void woken_by(trace::cause cause) noexcept override { cause_ = cause; }
  void timer_is_late(clock::duration late) noexcept override;
  void note_name(const control_block& fiber) noexcept override;
  void note_interrupt(const control_block& fiber, interrupt reason) noexcept override {
    write(trace::kind::cancel, with_detail(fiber, reason));
  }
  void note(trace::kind event, std::uint64_t second) noexcept override { write(event, second); }
  void note_poll(std::size_t runnable, bool by_itself) noexcept override;

 private:
  static constexpr std::size_t known_texts = 64, known_fibers = 1024;

  struct known_text {
    const char* text = nullptr;
    unsigned line = 0;
    std::uint32_t offset = 0;
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
  std::uint32_t offset_of(const char* text, unsigned line) noexcept;
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

}}}  // namespace motet::MOTET_ABI::detail
