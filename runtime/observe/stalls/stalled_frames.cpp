// SPDX-License-Identifier: MIT
// See observe/stalls/stalled_frames.hpp. Source: signal-safety(7).
#include "observe/stalls/stalled_frames.hpp"

#include <execinfo.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <motet/base/errors.hpp>

#include "base/system_calls.hpp"
#include "core/thread_state.hpp"
#include "platform/frames/return_addresses.hpp"
#include "platform/frames/signal_frame.hpp"
#include "runtime/shared_signal.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

constexpr int the_signal = SIGURG;

/// A request from one thread to another; there is one at a time.
struct question {
  enum stage : std::uint64_t { none, asked, being_answered, answered };

  /// The addressee and the stage in one word: a late response finds another word.
  static std::uint64_t word(pid_t thread, stage phase) noexcept {
    return static_cast<std::uint64_t>(thread) << 8 | phase;
  }

  std::atomic<std::uint64_t> state{none};
  std::array<void*, 64> frames{};
  std::size_t count = 0;
};

constinit question request;
struct sigaction old_action;

/// A main fiber's thread has not learnt the bounds of its stack: any will do.
stack bounds_of(const control_block& fiber) noexcept {
  if (fiber.has_stack()) return fiber.runs_on;
  return {nullptr, reinterpret_cast<std::byte*>(~std::uintptr_t{0})};
}

std::size_t frames_at(const void* context, const thread_state& thread,
                      std::span<void*> buffer) noexcept {
  const signal_frame interrupted_frame(context);
  const stack bounds = bounds_of(thread.running());
  const bool throws = thread.exceptions().uncaught > 0;
  if (interrupted_frame.doubt(bounds, throws) != nullptr) {
    buffer[0] = interrupted_frame.instruction();
    return 1;
  }
  const std::span<void*> frames = interrupted_frame.frames(bounds, buffer);
  std::copy(frames.begin(), frames.end(), buffer.begin());
  return frames.size();
}

void answer(const void* context) noexcept {
  const thread_state* thread = self();
  const pid_t number = ::gettid();
  std::uint64_t state = question::word(number, question::asked);
  const std::uint64_t answer_state = question::word(number, question::being_answered);
  if (thread == nullptr || !request.state.compare_exchange_strong(state, answer_state)) return;
  request.count = frames_at(context, *thread, request.frames);
  request.state.store(question::word(number, question::answered));
}

/// A signal for which the kernel had no memory to note the sender answers as well, and is the
/// program's then, too.
void on_signal(int signal, siginfo_t* info, void* context) noexcept {
  const int saved_errno = errno;
  answer(context);
  if (!shared_signal::carries(*info, &request))
    shared_signal::call(old_action, signal, info, context);
  errno = saved_errno;
}

}  // namespace

void answer_for_frames() {
  void* frame = nullptr;
  ::backtrace(&frame, 1);  // loads the unwinder, which the handler must not
  struct sigaction present{};
  if (::sigaction(the_signal, nullptr, &present) != 0) throw_errno(errno, "sigaction");
  if ((present.sa_flags & SA_SIGINFO) != 0 && present.sa_sigaction == &on_signal) return;
  shared_signal::install(the_signal, &on_signal, old_action);
}

std::span<void*> computing_frames(pid_t thread, std::span<void*> buffer) noexcept {
  using namespace std::chrono_literals;
  const std::uint64_t answer_state = question::word(thread, question::answered);
  request.state.store(question::word(thread, question::asked));
  if (shared_signal::send(thread, the_signal, &request)) {
    for (int i = 0; i < 100 && request.state.load() != answer_state; ++i) {
      sys::sleep_for(1ms);
    }
  }
  std::uint64_t state = question::word(thread, question::asked);
  if (request.state.compare_exchange_strong(state, question::none)) return buffer.first(0);
  while (request.state.load() != answer_state) sys::sleep_for(1ms);
  const std::size_t count = std::min(request.count, buffer.size());
  std::copy_n(request.frames.begin(), count, buffer.begin());
  return buffer.first(count);
}

std::span<void*> blocked_frames(const blocked_call& call, const void* top,
                                std::span<void*> buffer) noexcept {
  std::array<std::uintptr_t, 1'024> words;
  return return_addresses(reinterpret_cast<void*>(call.instruction),
                          read_stack(call.stack_pointer, top, words), buffer);
}

}}}  // namespace motet::MOTET_ABI::detail
