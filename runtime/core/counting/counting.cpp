// SPDX-License-Identifier: MIT
// See core/counting/counting.hpp.
#include "core/counting/counting.hpp"

#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

void begin_to_count(thread_state& thread) noexcept {
  counting& own = thread.counted;
  if (own.on_) return;
  own.on_ = true;
  thread.calls.count_in_flight(own.numbers_);
  own.counted_from_ = thread.until_look();
  tell(thread);
}

void tell(thread_state& thread, std::size_t fresh) noexcept {
  counting& own = thread.counted;
  thread_counters& told = own.numbers_;
  told.switches.add(static_cast<std::uint64_t>(own.counted_from_ - thread.until_look()));
  own.counted_from_ = thread.until_look();
  const std::size_t spun = thread.store.fibers_made() - 1;
  told.spun.set(spun);
  told.ended.set(spun - thread.living());
  told.living.set(thread.living());
  told.runnable.set(thread.runnable());
  told.timers_armed.set(thread.time.size());
  told.stacks_mapped.set(thread.store.stacks.mapped());
  told.stacks_resident.set(thread.store.stacks.resident());
  own.delay_.look(told.switches.get(), thread.runnable(), fresh, told);
}

}}}  // namespace motet::MOTET_ABI::detail
