// SPDX-License-Identifier: MIT
// See core/counting/counting.hpp.
#include "core/counting/counting.hpp"

#include "core/hooks.hpp"
#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

void begin_to_count(thread_state& thread) noexcept {
  counting& counts = thread.counts;
  if (counts.enabled_) return;
  counts.enabled_ = true;
  thread.calls.count_in_flight(counts.numbers_);
  counts.counted_from_ = thread.until_look();
  if (can_measure_stacks()) thread.store.first_function = hooks.counted_fiber_main;
  tell(thread);
}

void tell(thread_state& thread, std::size_t fresh) noexcept {
  counting& counts = thread.counts;
  thread_counters& numbers = counts.numbers_;
  numbers.switches.add(static_cast<std::uint64_t>(counts.counted_from_ - thread.until_look()));
  counts.counted_from_ = thread.until_look();
  const std::size_t spun = thread.store.fibers_made() - 1;
  numbers.spun.set(spun);
  numbers.ends.set(spun - thread.living());
  numbers.living.set(thread.living());
  numbers.runnable.set(thread.runnable());
  numbers.timers_armed.set(thread.time.size());
  numbers.stacks_mapped.set(thread.store.stacks.mapped());
  numbers.stacks_resident.set(thread.store.stacks.resident());
  counts.overtakings_ = thread.overtakings();
  counts.delay_.look(counts.turns(), thread.runnable(), fresh, numbers);
}

}}}  // namespace motet::MOTET_ABI::detail
