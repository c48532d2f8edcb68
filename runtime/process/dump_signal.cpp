// SPDX-License-Identifier: MIT
// See process/dump_signal.hpp. Whoever gets the signal sends it on to each thread of the roster.
// There the handler writes where the running fiber is, for it may compute for ever, and has the
// dump written at the thread's next look at its inbox; a thread that sleeps is woken instead.
// Source: signal-safety(7); backtrace(3) is safe once it has been called.
#include "process/dump_signal.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <motet/errors.hpp>
#include <mutex>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "ground/interrupted_place.hpp"
#include "ground/ticks.hpp"
#include "heart/thread_state.hpp"
#include "words/signal_safe_text.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

using report_line = line<std::size_t{12} * 1024>;

/// What the program had asked for before; written before our handler can run.
std::array<struct sigaction, 65> previous;

/// A signal that was sent on carries its address.
char sent_on;

bool was_sent_on(const siginfo_t& info) noexcept {
  return info.si_code == SI_QUEUE && info.si_value.sival_ptr == &sent_on;
}

/// Source: rt_tgsigqueueinfo(2).
void send_on(int signal, pid_t thread) noexcept {
  siginfo_t info{};
  info.si_signo = signal;
  info.si_code = SI_QUEUE;
  info.si_pid = ::getpid();
  info.si_uid = ::getuid();
  info.si_value.sival_ptr = &sent_on;
  ::syscall(SYS_rt_tgsigqueueinfo, info.si_pid, thread, signal, &info);
}

void ask_all_others(int signal) noexcept {
  const pid_t own = ::gettid();
  bool any = false;
  for (roster_place* each = motet_roster.load(); each != nullptr; each = each->next) {
    const pid_t thread = each->thread.load();
    any = any || thread != 0;
    if (thread == 0 || thread == own) continue;
    each->dump_asked = true;
    send_on(signal, thread);
  }
  if (!any) (line<64>() << "motet: no thread of this process has fibers\n").write();
}

void call_previous(int signal, siginfo_t* info, void* context) noexcept {
  const struct sigaction& before = previous[static_cast<std::size_t>(signal)];
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
  }
}

/// If the kernel had no room to say who sent it, the thread's place knows.
void on_signal(int signal, siginfo_t* info, void* context) noexcept {
  const int kept = errno;
  thread_state* thread = self();
  const bool asked = thread != nullptr && thread->answer_dump_request(context);
  if (!asked && !was_sent_on(*info)) {
    ask_all_others(signal);
    call_previous(signal, info, context);
  }
  errno = kept;
}

/// As backtrace_symbols_fd(3) does: "file(function+offset) [address]", or without the function.
void describe_frame(report_line& out, void* address) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  Dl_info known{};
  out << "  ";
  if (::dladdr(address, &known) != 0 && known.dli_fname != nullptr) {
    const bool named = known.dli_sname != nullptr;
    const void* base = named ? known.dli_saddr : known.dli_fbase;
    out << known.dli_fname << "(" << (named ? known.dli_sname : "") << "+";
    out.hex(at - reinterpret_cast<std::uintptr_t>(base)) << ") ";
  }
  (out << "[").hex(at) << "]\n";
}

void write_whole(std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// These mean something to the runtime, or cannot be handled.
bool usable(int signal) noexcept {
  for (const int other :
       {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPIPE}) {
    if (signal == other) return false;
  }
  return signal > 0 && signal <= SIGRTMAX && (signal < 32 || signal >= SIGRTMIN);
}

/// Returns: 0 if there is no such signal.
int signal_named(std::string_view name) noexcept {
  int number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error == std::errc() && end == name.data() + name.size()) return number;
  if (name.substr(0, 3) == "SIG") name.remove_prefix(3);
  for (number = 1; number < 32; ++number) {
    const char* known = ::sigabbrev_np(number);
    if (known != nullptr && name == known) return number;
  }
  return 0;
}

void install(int signal) {
  void* one = nullptr;
  ::backtrace(&one, 1);
  struct sigaction& before = previous[static_cast<std::size_t>(signal)];
  if (::sigaction(signal, nullptr, &before) != 0) throw_errno(errno, "sigaction");
  const bool had_one = (before.sa_flags & SA_SIGINFO) != 0 ||
                       (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN);
  struct sigaction ours{};
  ours.sa_sigaction = &on_signal;
  ours.sa_mask = before.sa_mask;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | (had_one ? before.sa_flags & SA_RESTART : SA_RESTART);
  if (::sigaction(signal, &ours, nullptr) != 0) throw_errno(errno, "sigaction");
}

}  // namespace

/// In the signal handler, on the thread itself.
/// Returns: whether another thread had sent the signal on.
bool thread_state::answer_dump_request(void* context) noexcept {
  const bool asked = place_.take_dump_request();
  dump_wanted_.store(true);
  if (!mail_->nudge()) report_running(context);
  return asked;
}

void thread_state::report_running(void* context) const noexcept {
  const control_block& fiber = *running_;
  const double ticks_per_poll = static_cast<double>(ticks_between_polls_);
  const double polls_left_out = static_cast<double>(ticks() - polled_at_) / ticks_per_poll;
  const auto between = std::chrono::duration<double, std::milli>(options_.time_between_polls);
  report_line out;
  out << "motet: thread " << static_cast<std::uint64_t>(::gettid()) << " runs fiber " << fiber.id;
  if (fiber.named) out << " \"" << name_of(fiber) << "\"";
  if (!fiber.is_main) {
    out << ", spun at " << fiber.site.file << ":" << std::uint64_t{fiber.site.line};
  }
  out << "; no poll for " << static_cast<std::uint64_t>(polls_left_out * between.count())
      << " ms; it is ";
  const interrupted_place place(context);
  const char* doubt = place.doubt(stack_of(fiber), live_exceptions_->uncaught > 0);
  if (doubt != nullptr) {
    out << doubt << ", at\n";
    describe_frame(out, place.instruction());
  } else {
    out << "at\n";
    std::array<void*, 64> room;
    for (void* each : place.frames(room)) describe_frame(out, each);
  }
  out.write();
}

/// At home, where a dump may use memory.
void thread_state::dump_as_asked() noexcept {
  const int kept = errno;
  dump_wanted_.store(false);
  try {
    std::ostringstream out;
    out << "motet: thread " << ::gettid() << " has these fibers:\n";
    dump(out);
    write_whole(out.str());
  } catch (const std::bad_alloc&) {
    write_whole("motet: no memory for a dump\n");
  }
  errno = kept;
}

int dump_signal(const options& chosen) {
  const char* name = std::getenv("MOTET_DUMP_SIGNAL");
  int signal = 0;
  if (name != nullptr && *name != '\0') {
    signal = signal_named(name);
    if (!usable(signal)) {
      throw std::invalid_argument("MOTET_DUMP_SIGNAL is \"" + std::string(name) +
                                  "\", not a signal that can be used, as QUIT, USR1 or 12");
    }
  }
  if (chosen.dump_signal == 0) return signal;
  if (!usable(chosen.dump_signal)) {
    throw std::invalid_argument("options.dump_signal must be 0 or a signal that can be used");
  }
  return chosen.dump_signal;
}

/// Once for each signal: a handler that replaces ours may call ours.
void answer_dump_signal(int signal) {
  static std::mutex lock;
  static std::array<bool, 65> installed{};
  const std::lock_guard guard(lock);
  bool& done = installed.at(static_cast<std::size_t>(signal));
  if (done) return;
  install(signal);
  done = true;
}

}}}  // namespace motet::MOTET_ABI::detail
