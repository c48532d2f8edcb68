// SPDX-License-Identifier: MIT
// Decides in what order the fibers of a simulated world run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/event_recorder.hpp"
#include "core/thread_state.hpp"
#include "testing/simulation.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

class order_of_world final : public event_recorder {
 public:
  order_of_world(testing::simulation& inside, thread_state& home) : inside_(inside), home_(home) {}

  void abandon() noexcept override {}
  void begin(const control_block&) noexcept override {}
  void note_switch(const control_block& previous, const control_block* next) noexcept override;
  void note_next(const control_block*) noexcept override {}
  void note_run(const control_block&) noexcept override {}
  void note_wake(const control_block& fiber) noexcept override;
  void woken_by(trace::cause cause) noexcept override;
  void timer_is_late(clock::duration late) noexcept override;
  void note_name(const control_block&) noexcept override {}
  void note_interrupt(const control_block&, interrupt) noexcept override {}
  void note(trace::kind, std::uint64_t) noexcept override {}
  void note_poll(std::size_t runnable, bool by_itself) noexcept override;
  std::optional<std::size_t> choose_branch(std::size_t count) noexcept override;

 private:
  void check_invariants();
  void shuffle_woken();
  void choose_next();
  std::size_t highest_priority();
  std::int64_t priority_of(const control_block& fiber);
  void change_priorities(const control_block& running);
  void cancel_orphan(control_block& running) noexcept;

  testing::simulation& inside_;
  thread_state& home_;
  bool in_poll_ = false;
  bool snoozes_ = false;            // the fiber that switches
  std::size_t instant_ = 0;         // of the wake-ups that follow, counted in this poll
  clock::duration late_{-1};        // of the timers of that instant
  std::vector<std::size_t> woken_;  // the instant of each fiber that this poll has woken
  std::map<std::uint64_t, std::int64_t> priorities_;  // of order::pct, by the fiber's number
  std::int64_t lowest_ = 0;
  std::vector<control_block*> room_;  // for the queue, while it is put into order
};

}}}  // namespace motet::MOTET_ABI::detail
