// SPDX-License-Identifier: MIT
// See core/dump_request.hpp. In the signal handler only the running fiber is described, for it may
// compute for ever; the rest is written at the thread's next look at its inbox. A thread that
// sleeps is woken instead.
// Source: signal-safety(7); backtrace(3) is safe once it has been called.
#include "core/dump_request.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <new>
#include <sstream>
#include <string_view>

#include "base/printable.hpp"
#include "base/signal_safe_text.hpp"
#include "base/system_calls.hpp"
#include "core/thread_state.hpp"
#include "observe/dumps/dump.hpp"
#include "observe/dumps/fiber_frames.hpp"
#include "platform/frames/signal_frame.hpp"
#include "unhandled/snapshots.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

using report_line = line<std::size_t{12} * 1024>;

/// Of more fibers the dump tells by site: nobody reads a thousand stacks.
constexpr std::size_t most_with_lines = 1'000;

void write_frame(report_line& output, const void* address) noexcept {
  const symbol entry = symbol_at(address);
  output << "  ";
  describe_frame(output, address, entry.name, entry);
  output << "\n";
}

void write_whole(std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t count = sys::write(STDERR_FILENO, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace

bool dump_request::answer(void* context) noexcept {
  const bool asked = registration_.take_dump_request();
  requests_.store(true);
  if (!thread_.mail().nudge()) report_running(context);
  return asked;
}

void dump_request::report_running(void* context) const noexcept {
  const control_block& fiber = thread_.running();
  const options& settings = thread_.settings();
  const auto period = std::chrono::duration<double, std::milli>(settings.time_between_polls);
  const double without_poll = thread_.schedule.omitted_polls() * period.count();
  report_line line;
  line << "motet: thread " << static_cast<std::uint64_t>(::gettid()) << " runs fiber " << fiber.id;
  if (fiber.named) line << " \"" << quotable(name_of(fiber)) << "\"";
  if (!fiber.is_main) {
    line << ", spun at " << fiber.site.file << ":" << std::uint64_t{fiber.site.line};
  }
  line << "; no poll for " << static_cast<std::uint64_t>(without_poll) << " ms; it is ";
  const signal_frame interrupted_frame(context);
  const stack& bounds = stack_of(fiber);
  const char* doubt = interrupted_frame.doubt(bounds, thread_.exceptions().uncaught > 0);
  if (doubt != nullptr) {
    line << doubt << ", at\n";
    write_frame(line, interrupted_frame.instruction());
  } else {
    line << "at\n";
    std::array<void*, 64> buffer;
    for (void* frame : interrupted_frame.frames(bounds, buffer)) write_frame(line, frame);
  }
  line.write();
}

void dump_request::write() noexcept {
  const int saved_errno = errno;
  save_snapshot(snapshot_cause::signal);
  requests_.store(false);
  try {
    std::ostringstream output;
    output << "motet: thread " << ::gettid() << " has these fibers:\n";
    const bool crowd = has_more_fibers(thread_, most_with_lines);
    dump(thread_, output, {.stacks = true, .group_by_site = crowd});
    write_whole(output.str());
  } catch (const std::bad_alloc&) {
    write_whole("motet: no memory for a dump\n");
  }
  errno = saved_errno;
}

const stack& dump_request::stack_of(const control_block& fiber) const noexcept {
  const bool on_threads_own = &fiber == &thread_.main_fiber() && fiber.runs_on.bottom == nullptr;
  return on_threads_own ? own_stack_ : fiber.runs_on;
}

}}}  // namespace motet::MOTET_ABI::detail
