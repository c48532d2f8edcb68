// SPDX-License-Identifier: MIT
// See stats.hpp: what is counted is in core/counting/thread_counters.hpp.
#include <algorithm>
#include <map>
#include <memory>
#include <motet/observe/stats.hpp>
#include <numeric>

#include "base/verb_table.hpp"
#include "core/counting/stack_census.hpp"
#include "core/thread_registry.hpp"
#include "core/thread_state.hpp"
#include "observe/stalls/stall_watch.hpp"
#include "platform/offload/blocking_pool.hpp"
#include "platform/ticks.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace {

template <std::size_t Size>
void read(std::array<std::uint64_t, Size>& target, const std::array<detail::tally, Size>& source) {
  std::transform(source.begin(), source.end(), target.begin(),
                 [](const detail::tally& counter) { return counter.get(); });
}

thread_stats read(const detail::thread_counters& counters) {
  thread_stats result;
  result.fibers = counters.living.get();
  result.runnable = counters.runnable.get();
  result.timers_armed = counters.timers_armed.get();
  result.stacks_mapped = counters.stacks_mapped.get();
  result.stacks_resident = counters.stacks_resident.get();
  read(result.in_flight, counters.in_flight);
  result.operations =
      std::accumulate(result.in_flight.begin(), result.in_flight.end(), std::uint64_t{0});
  result.spun = counters.spun.get();
  result.ended = counters.ends.get();
  result.switches = counters.switches.get();
  result.polls = counters.polls.get();
  result.sleeps = counters.sleeps.get();
  const double ticks_in_ms = static_cast<double>(detail::ticks_in(std::chrono::milliseconds(1)));
  const double asleep_ms = static_cast<double>(counters.ticks_asleep.get()) / ticks_in_ms;
  result.asleep = std::chrono::nanoseconds(static_cast<std::int64_t>(asleep_ms * 1e6));
  result.mail = counters.mail.get();
  result.timers_fired = counters.timers_fired.get();
  result.timers_late = counters.timers_late.get();
  read(result.queue_delay.buckets, counters.queue_delay);
  return result;
}

/// A thread that sleeps is woken for it, once.
void have_all_count() {
  detail::mailbox::for_each([](detail::mailbox& inbox) {
    auto request = std::make_unique<detail::post>();
    request->handle_post = [](detail::post& item, detail::thread_state& thread) noexcept {
      delete &item;
      begin_to_count(thread);
    };
    if (inbox.push(*request)) static_cast<void>(request.release());
  });
}

void begin_to_count() {
  if (detail::counters_are_wanted.exchange(true)) return;
  try {
    have_all_count();
  } catch (...) {
    detail::counters_are_wanted = false;  // the next caller asks all of them
    throw;
  }
}

}  // namespace

std::uint64_t span_histogram::count() const noexcept {
  return std::accumulate(buckets.begin(), buckets.end(), std::uint64_t{0});
}

std::chrono::nanoseconds span_histogram::quantile(double q) const noexcept {
  const double rank = std::clamp(q, 0.0, 1.0) * static_cast<double>(count());
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    total += buckets[i];
    if (buckets[i] == 0 || static_cast<double>(total) < rank) continue;
    return i < 62 ? std::chrono::nanoseconds(std::int64_t{2} << i)
                  : std::chrono::nanoseconds::max();
  }
  return {};
}

process_stats stats() {
  begin_to_count();
  if (detail::thread_state* thread = detail::self()) {
    detail::begin_to_count(*thread);
    detail::tell(*thread);
  }
  process_stats result;
  detail::thread_counters remainder;
  std::map<pid_t, detail::thread_counters> of_threads;  // of nested visits one thread has several
  detail::read_counters(remainder, [&](detail::thread_entry& entry) {
    of_threads[entry.thread.load()].add(entry.counters);
  });
  for (const auto& [thread, counters] : of_threads) {
    result.threads.push_back(read(counters));
    result.threads.back().thread = thread;
  }
  result.ended = read(remainder);
  const auto offload = detail::blocking_pool::load();
  result.offload_threads = offload.threads;
  result.offload_idle = offload.idle;
  result.offload_queued = offload.in_line;
  result.offload_limit = detail::blocking_pool::most.load();
  result.stalls = detail::stalls_so_far();
  for (const detail::stack_use& use : detail::stack_uses())
    result.stacks.push_back({use.site, use.samples, use.most});
  return result;
}

std::string_view name_of(verb kind) noexcept {
  return detail::row_of(kind).name.label;
}

}}  // namespace motet::MOTET_ABI
