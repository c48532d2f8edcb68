// SPDX-License-Identifier: MIT
// When a thread's runtime starts: in run(), or in the first call that needs it. When it ends: with
// run(), or by a hook when the thread, or the process, ends.
#include "runtime/run.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <motet/runtime/run.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "backends.hpp"
#include "base/disabled.hpp"
#include "core/hooks.hpp"
#include "core/thread_state.hpp"
#include "platform/mapping_guard.hpp"
#include "platform/offload/blocking_pool.hpp"
#include "platform/valgrind.hpp"
#include "runtime/environment.hpp"
#include "runtime/foreign_backend.hpp"
#include "runtime/lazy_backend.hpp"
#include "runtime/visitor_runtime.hpp"

extern "C" {
/// Source: Itanium C++ ABI, 3.3.6.3 and the thread_local proposal; libstdc++ and glibc have it.
int __cxa_thread_atexit(void (*hook)(void*), void* argument, void* dso) noexcept;
extern void* __dso_handle;
}

namespace motet { inline namespace MOTET_ABI {

namespace detail {

namespace {

void require(bool holds, const char* message) {
  if (!holds) throw std::invalid_argument(message);
}

bool power_of_two(unsigned value) {
  return value != 0 && (value & (value - 1)) == 0;
}

template <typename T, typename Low, typename High>
bool within(const T& value, const Low& low, const High& high) {
  return low <= value && value <= high;
}

bool asks_for_observers(const options& settings) {
  return !settings.trace.file.empty() || settings.stall_report.count() > 0 ||
         settings.dump_signal != 0;
}

void check(const options& settings) {
  using namespace std::chrono_literals;
  stack_pool::check_size(settings.stack_size);
  require(within(settings.switches_between_polls, 1U, 1'000'000U),
          "options.switches_between_polls must be 1 to 1,000,000");
  require(within(settings.time_between_polls, 1us, 1s),
          "options.time_between_polls must be 1 us to 1 s");
  require(within(settings.busy_wait, 0us, 10ms), "options.busy_wait must be 0 to 10 ms");
  require(within(settings.timer_slack, 0us, 100ms), "options.timer_slack must be 0 to 100 ms");
  require(power_of_two(settings.ring_submissions) && settings.ring_submissions <= 32768,
          "options.ring_submissions must be a power of two up to 32768");
  require(power_of_two(settings.ring_completions) && within(settings.ring_completions, 2U, 65536U),
          "options.ring_completions must be a power of two from 2 to 65536");
  require(settings.ring_completions >= settings.ring_submissions,
          "options.ring_completions must not be below options.ring_submissions");
  require(settings.handler_grace.count() >= 0, "options.handler_grace must not be negative");
  require(settings.stall_report == 0ms || within(settings.stall_report, 5ms, 1h),
          "options.stall_report must be 0, or 5 ms to 1 h");
  require(settings.offload_limit <= 65'536, "options.offload_limit must be 0 to 65,536");
  require(settings.deadlock_report.count() >= 0, "options.deadlock_report must not be negative");
  require(hooks.prepare != nullptr || !asks_for_observers(settings),
          "options.trace, stall_report and dump_signal need a motet that is built with observe");
}

bool is_built(std::string_view name) {
  const auto names = backend_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::unique_ptr<backend> kernel_for(const options& settings) {
  std::string name = settings.backend;
  const char* variable = std::getenv("MOTET_BACKEND");
  if (name.empty() && variable != nullptr) name = variable;
  backend_options sizes;
  sizes.submissions = settings.ring_submissions;
  sizes.completions = settings.ring_completions;
  sizes.on_notice = settings.on_notice;
  if (settings.make_backend) {
    std::unique_ptr<backend> result = settings.make_backend(sizes);
    require(result != nullptr, "options.make_backend returned null");
    return result;
  }
  // Valgrind knows few operations of a ring.
  if ((name.empty() || name == "auto") && valgrind::is_active() && is_built("libev"))
    name = "libev";
  const mapping_guard guard;
  return make_backend(name, sizes);
}

namespace {

void start_runtime(const options& chosen) {
  const options settings = completed_by_environment(chosen);
  check(settings);
  check_disabled();
  std::unique_ptr<event_recorder> recorder;
  if (hooks.prepare != nullptr) recorder = hooks.prepare(settings);
  if (settings.offload_limit > 0) blocking_pool::most.store(settings.offload_limit);
  auto* thread = new thread_state(settings, kernel_for(settings), new_fork_reserve());
  if (hooks.observe != nullptr) hooks.observe(*thread, std::move(recorder));
  set_self(thread);
  if (settings.stall_report.count() > 0) thread->dumps.monitored() = true;
}

/// Ends this thread's runtime; from then on `mark` stands in its place.
/// Returns: the first failure that nobody was told of, if `returns_first`; on_unhandled gets the
/// rest.
std::exception_ptr finish(std::uintptr_t mark, bool returns_first) noexcept {
  thread_state* thread = self();
  const std::exception_ptr first = thread->end(returns_first);
  if (hooks.unobserve != nullptr) hooks.unobserve(*thread);
  set_self(reinterpret_cast<thread_core*>(mark));
  delete thread;
  return first;
}

/// Runs when a thread ends, or in exit(); in the latter case perhaps on the stack of a spun fiber,
/// whose frames, like those of the main fiber, are left as they are.
void end_with_thread(void*) noexcept {
  thread_state* thread = self();
  if (thread == nullptr) return;
  if (hooks.unobserve != nullptr) hooks.unobserve(*thread);
  const control_block& caller = thread->running();
  if (&caller != &thread->main_fiber()) {
    thread->end_others();
  } else if (caller.runs_on.bottom == nullptr) {
    finish(ended_mark, false);
    return;
  } else {
    thread->end(false);  // a fiber that has forked: it stands on one of the runtime's stacks
  }
  set_self(reinterpret_cast<thread_core*>(ended_mark));
}

/// exit() in run() ends that runtime's fibers too. A session cannot use the thread's hook, which
/// cannot be taken back.
void end_with_process() {
  end_with_thread(nullptr);
}

constinit std::atomic<bool> ends_late{false};

void end_late() {
  ends_late.store(false);  // a destructor that runs later may begin the next runtime
  end_with_thread(nullptr);
}

}  // namespace

/// Destructors of statics may use motet when exit() has ended the thread's runtime and has called
/// all hooks of the thread: the runtime that they begin ends behind them.
thread_core& begin_runtime() {
  const bool is_late = read_self() == ended_mark;
  start_runtime({});
  ::__cxa_thread_atexit(&end_with_thread, nullptr, static_cast<void*>(&__dso_handle));
  if (is_late && !ends_late.exchange(true)) std::atexit(&end_late);
  return *self();
}

namespace {

/// The last fiber number that an earlier visit to this thread has used; 0 before the first visit,
/// and during one.
thread_local std::uint64_t numbers_used = 0;

}  // namespace

visitor_runtime::visitor_runtime() : saved_slot_(read_self()) {
  const foreign_thread guard{std::exchange(numbers_used, 0)};
  set_self(new thread_state({}, std::make_unique<foreign_backend>(), nullptr, &guard));
}

visitor_runtime::~visitor_runtime() {
  numbers_used = self()->store.numbers_used();
  finish(saved_slot_, false);
}

control_block& begin_session(const options& settings) {
  if (read_self() == ended_mark) throw std::logic_error("run(): this thread's runtime has ended");
  if (self() != nullptr) {
    if (const char* use = self()->in_use()) {
      throw std::logic_error(std::string("run(): this thread already has a runtime, started by its "
                                         "first use of motet, and it is still in use: ") +
                             use);
    }
    finish(0, false);
  }
  [[maybe_unused]] static const int registration = std::atexit(&end_with_process);
  start_runtime(settings);
  self()->calls_main = true;
  return self()->main_fiber();
}

std::exception_ptr end_session(control_block& main, bool returns_first) noexcept {
  come_home(main);
  return finish(0, returns_first);
}

session::session(const options& settings) : main_(&begin_session(settings)) {}

void session::end() {
  ended_ = true;
  if (const std::exception_ptr first = end_session(*main_, true)) std::rethrow_exception(first);
}

session::~session() {
  if (!ended_) end_session(*main_, false);
}

}  // namespace detail

std::string_view backend_name() {
  return detail::here().kernel().name();
}

}}  // namespace motet::MOTET_ABI
