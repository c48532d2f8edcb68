// SPDX-License-Identifier: MIT
// See observe/stalls/stall_timer.hpp. Source: clock_getres(2) and Linux, posix-timers.h, for the
// clock of a thread by its number.
#include "observe/stalls/stall_timer.hpp"

#include <time.h>

#include <array>
#include <cstdio>
#include <memory>
#include <string_view>

#include "core/thread_state.hpp"
#include "platform/frames/peek.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

std::chrono::nanoseconds computed_by(pid_t thread) noexcept {
  constexpr int of_one_thread = 4, as_scheduled = 2;
  const auto clock = static_cast<clockid_t>((~static_cast<unsigned>(thread) << 3) |
                                            static_cast<unsigned>(of_one_thread | as_scheduled));
  timespec spent{};
  if (::clock_gettime(clock, &spent) != 0) return {};
  return std::chrono::seconds(spent.tv_sec) + std::chrono::nanoseconds(spent.tv_nsec);
}

}  // namespace

std::optional<progress> progress_of(const thread_state& thread) noexcept {
  const auto addresses = thread.progress();
  mailbox* mail = nullptr;
  std::uintptr_t word = 0;
  if (!peek(addresses.mail, mail) || mail == nullptr) return std::nullopt;
  if (!peek(mail->word_address(), word) || mailbox::rests(word)) return std::nullopt;
  progress result;
  int held_back = 0;
  const bool whole = peek(addresses.runner, result.fiber) &&
                     peek(addresses.until_look, result.until_look) &&
                     peek(addresses.held_back, held_back) &&
                     peek(thread.schedule.switches_address(), result.switches) &&
                     peek(thread.schedule.polled_at_address(), result.polled_at);
  if (!whole || result.fiber == nullptr) return std::nullopt;
  // A guard keeps the sum, but for one that begins or ends between these two looks.
  result.until_look += held_back;
  // A fiber that has parked is still the last that ran while the thread polls on its stack.
  fiber_state state{};
  const auto* state_address = reinterpret_cast<const fiber_state*>(&result.fiber->state);
  if (!peek(state_address, state) || state != fiber_state::running) return std::nullopt;
  return result;
}

/// The state stands behind the thread's name, which may contain anything. Source: proc(5).
char state_of(pid_t thread) noexcept {
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/proc/self/task/%d/stat", static_cast<int>(thread));
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.data(), "re"), &std::fclose);
  std::array<char, 128> line{};
  if (file == nullptr || std::fgets(line.data(), line.size(), file.get()) == nullptr) return '?';
  const std::string_view text(line.data());
  const std::size_t end = text.rfind(") ");
  return end == std::string_view::npos || end + 2 >= text.size() ? '?' : text[end + 2];
}

bool stall_timer::note(const std::optional<progress>& observation, pid_t thread,
                       clock::time_point time, clock::duration limit) noexcept {
  if (!observation || observation != observation_) {
    observation_ = observation;
    start_ = time;
    say_at_ = limit;
    times_said_ = 0;
    if (observation) processor_time_ = computed_by(thread);
    return false;
  }
  if (time - start_ < say_at_) return false;
  const char state = state_of(thread);
  if (state == 'T' || state == 't') return false;  // it was stopped
  // A thread that waits for a processor holds nobody up, but is held up itself.
  const bool could_run = state == 'R' || state == '?';
  if (could_run && computed_by(thread) - processor_time_ < limit / 2) return false;
  say_at_ = 2 * (time - start_);
  ++times_said_;
  return true;
}

}}}  // namespace motet::MOTET_ABI::detail
