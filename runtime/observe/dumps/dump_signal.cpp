// SPDX-License-Identifier: MIT
// See observe/dumps/dump_signal.hpp. The thread that gets the signal sends it on to each thread of
// the thread registry. What happens there is in observe/dumps/dump_request.cpp. Source:
// signal-safety(7); backtrace(3) is safe once it has been called.
#include "observe/dumps/dump_signal.hpp"

#include <execinfo.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/signal_safe_text.hpp"
#include "core/thread_state.hpp"
#include "runtime/shared_signal.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// What the program had asked for before; written before our handler can run.
std::array<struct sigaction, 65> previous;
constinit std::atomic<bool> answered{false};

/// A signal that was sent on carries its address.
char sent_on;

void ask_all_others(int signal) noexcept {
  const pid_t this_thread = ::gettid();
  bool has_fibers = false;
  for (thread_entry* entry = motet_thread_registry.load(); entry != nullptr; entry = entry->next) {
    const pid_t thread = entry->thread.load();
    has_fibers = has_fibers || thread != 0;
    if (thread == 0 || thread == this_thread) continue;
    entry->dump_asked = true;
    shared_signal::send(thread, signal, &sent_on);
  }
  if (!has_fibers) (line<64>() << "motet: no thread of this process has fibers\n").write();
}

/// If the kernel had no memory to note the sender, the thread's entry in the thread registry knows.
void on_signal(int signal, siginfo_t* info, void* context) noexcept {
  const int saved_errno = errno;
  thread_state* thread = self();
  const bool asked = thread != nullptr && thread->dumps.answer(context);
  if (!asked && !shared_signal::carries(*info, &sent_on)) {
    ask_all_others(signal);
    shared_signal::call(previous[static_cast<std::size_t>(signal)], signal, info, context);
  }
  errno = saved_errno;
}

/// These mean something to the runtime, or cannot be handled.
bool usable(int signal) noexcept {
  for (const int number : {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS,
                           SIGABRT, SIGPIPE, SIGURG}) {
    if (signal == number) return false;
  }
  return signal > 0 && signal <= SIGRTMAX && (signal < 32 || signal >= SIGRTMIN);
}

/// Returns: 0 if there is no signal of that name.
int signal_named(std::string_view name) noexcept {
  int number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error == std::errc() && end == name.data() + name.size()) return number;
  if (name.substr(0, 3) == "SIG") name.remove_prefix(3);
  for (number = 1; number < 32; ++number) {
    const char* abbreviation = ::sigabbrev_np(number);
    if (abbreviation != nullptr && name == abbreviation) return number;
  }
  return 0;
}

void install(int signal) {
  void* frame = nullptr;
  ::backtrace(&frame, 1);
  shared_signal::install(signal, &on_signal, previous[static_cast<std::size_t>(signal)]);
}

}  // namespace

int dump_signal(const options& settings) {
  const char* name = std::getenv("MOTET_DUMP_SIGNAL");
  int signal = 0;
  if (name != nullptr && *name != '\0') {
    signal = signal_named(name);
    if (!usable(signal)) {
      throw std::invalid_argument("MOTET_DUMP_SIGNAL is \"" + std::string(name) +
                                  "\", not a signal that can be used, as QUIT, USR1 or 12");
    }
  }
  if (settings.dump_signal == 0) return signal;
  if (!usable(settings.dump_signal)) {
    throw std::invalid_argument("options.dump_signal must be 0 or a signal that can be used");
  }
  return settings.dump_signal;
}

/// Installed once per signal: a handler that replaces ours may call ours.
void answer_dump_signal(int signal) {
  static std::mutex lock;
  static std::array<bool, 65> flags{};
  const std::lock_guard guard(lock);
  bool& done = flags.at(static_cast<std::size_t>(signal));
  if (done) return;
  install(signal);
  done = true;
  answered.store(true);
}

bool answers_dump_signal() noexcept {
  return answered.load();
}

}}}  // namespace motet::MOTET_ABI::detail
