// SPDX-License-Identifier: MIT
// See observe/observers.hpp.
#include "observe/observers.hpp"

#include <utility>

#include "core/thread_state.hpp"
#include "observe/debugger_page.hpp"
#include "observe/dumps/dump_signal.hpp"
#include "observe/stalls/stall_watch.hpp"
#include "observe/traces/tracing.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

std::unique_ptr<event_recorder> prepare_observers(const options& settings) {
  check_trace(settings.trace);
  const int signal = dump_signal(settings);
  if (signal != 0) answer_dump_signal(signal);
  if (settings.stall_report.count() > 0) monitor_stalls(settings);
  return recorder_for(settings);
}

void observe(thread_state& thread, std::unique_ptr<event_recorder> recorder) noexcept {
  write_debugger_page(thread);
  if (recorder != nullptr) record(thread, std::move(recorder));
  if (answers_dump_signal()) thread.dumps.learn_own_stack();
}

void lock_observers() {
  trace_file::beginning().lock();
}

void unlock_observers() noexcept {
  trace_file::beginning().unlock();
}

void abandon_observers() noexcept {
  forget_monitor();
  trace_file::abandon();
  trace_file::beginning().unlock();
}

}}}  // namespace motet::MOTET_ABI::detail
