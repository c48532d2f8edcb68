// SPDX-License-Identifier: MIT
// See process/stalls/stall_watch.hpp. What is on the watched thread may change, or go, at any
// moment: so everything there is looked at through the kernel (process/peek.hpp), and what was seen
// counts only if the thread has made no progress meanwhile.
#include "process/stalls/stall_watch.hpp"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <motet/call_site.hpp>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "failures/notice.hpp"
#include "ground/signal_mask.hpp"
#include "heart/roster.hpp"
#include "heart/thread_state.hpp"
#include "process/dumps/fiber_frames.hpp"
#include "process/peek.hpp"
#include "process/stalls/blocked_call.hpp"
#include "process/stalls/sighting.hpp"
#include "process/stalls/stalled_frames.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

using std::chrono::milliseconds;

/// A thread that a fiber holds, as it was seen under the roster's lock.
struct held_thread {
  pid_t number;
  const thread_state* runtime;
  progress seen;
  sighting::clock::duration held;
  bool is_new;
  options told;  // only on_notice is used
};

/// Never destroyed: the watching thread outlives statics.
class watch_state {
 public:
  std::mutex lock;
  bool begun = false;
  using place = std::pair<std::string, unsigned>;
  std::map<place, stall_stats> by_site;

  static watch_state& get() {
    watch_state* found = current.load();
    if (found != nullptr) return *found;
    auto* made = new watch_state;
    if (current.compare_exchange_strong(found, made)) return *made;
    delete made;
    return *found;
  }
  /// In a forked child nobody watches, and the lock may be held by a thread that is not there.
  static void start_over() noexcept { current.store(nullptr); }

 private:
  static constinit std::atomic<watch_state*> current;
};

constinit std::atomic<watch_state*> watch_state::current{nullptr};

/// The parts of a running fiber that a report names.
struct fiber_facts {
  std::uint64_t id = 0;
  call_site site;
  bool is_main = false;
  std::string name;
  stack runs_on;
};

/// The string is copied bit by bit, and its text looked at where that says it is. It is never
/// destroyed.
std::string name_at(const std::string* named) {
  constexpr std::size_t longest = 128;
  alignas(std::string) std::array<std::byte, sizeof(std::string)> copy;
  std::array<std::byte, longest> text;
  if (peek_bytes(named, copy) != copy.size()) return {};
  const auto& seen = *reinterpret_cast<const std::string*>(copy.data());
  const std::size_t size = std::min(seen.size(), longest);
  const std::size_t got = peek_bytes(seen.data(), std::span(text).first(size));
  return {reinterpret_cast<const char*>(text.data()), got};
}

fiber_facts facts_of(const control_block& fiber) {
  fiber_facts found;
  bool named = false;
  std::array<std::byte, sizeof(control_block)> copy;
  if (peek_bytes(&fiber, copy) != copy.size()) return found;
  const auto& seen = *reinterpret_cast<const control_block*>(copy.data());
  found.id = seen.id;
  found.site = seen.site;
  found.is_main = seen.is_main;
  found.runs_on = seen.runs_on;
  named = seen.named;
  const void* cold = block_slab::beside(fiber, block_slab::cold_parts, block_slab::cold_room);
  if (named) found.name = name_at(&static_cast<const cold_part*>(cold)->name);
  return found;
}

void count(const fiber_facts& fiber, const held_thread& thread, const std::string& call) {
  watch_state& state = watch_state::get();
  const std::lock_guard guard(state.lock);
  const std::string file = fiber.site.file == nullptr ? "" : fiber.site.file;
  stall_stats& counted = state.by_site[{file, fiber.site.line}];
  counted.site = fiber.site;
  if (thread.is_new) ++counted.stalls;
  counted.longest = std::max<std::chrono::nanoseconds>(counted.longest, thread.held);
  if (!call.empty()) counted.call = call;
}

std::string describe(const held_thread& thread, const fiber_facts& fiber, const std::string& call,
                     std::span<void* const> frames) {
  const auto held = std::chrono::duration_cast<milliseconds>(thread.held).count();
  std::string text = "fiber " + std::to_string(fiber.id);
  if (!fiber.name.empty()) text += " \"" + fiber.name + '"';
  if (!fiber.is_main && fiber.site.file != nullptr) {
    text +=
        ", spun at " + std::string(fiber.site.file) + ':' + std::to_string(fiber.site.line) + ',';
  }
  text += " has held thread " + std::to_string(thread.number) + " for " + std::to_string(held) +
          " ms: it " + (call.empty() ? "computes" : "is blocked in " + call);
  if (!frames.empty()) text += ", at";
  frame_names names;
  for (const void* each : frames) text += "\n  " + names.of(each);
  return text;
}

/// At most one a second: a program that stalls again and again is told often enough.
void tell(const options& told, std::string text) {
  static sighting::clock::time_point last;  // of the watching thread alone
  static std::uint64_t unsaid = 0;
  const auto now = sighting::clock::now();
  if (last != sighting::clock::time_point() && now - last < std::chrono::seconds(1)) {
    ++unsaid;
    return;
  }
  last = now;
  if (unsaid > 0) text += "\n  (" + std::to_string(unsaid) + " others were not reported)";
  unsaid = 0;
  notice(told, text);
}

void report(const held_thread& thread) {
  std::array<void*, 64> room;
  const fiber_facts fiber = facts_of(*thread.seen.running);
  const auto blocked = blocked_call_of(thread.number);
  const std::span<void*> frames = blocked ? blocked_frames(*blocked, fiber.runs_on.top, room)
                                          : computing_frames(thread.number, room);
  if (progress_of(*thread.runtime) != thread.seen) return;
  const std::string call = blocked ? blocked->text : std::string();
  count(fiber, thread, call);
  tell(thread.told, describe(thread, fiber, call, frames));
}

class watcher {
 public:
  [[noreturn]] void go_on_for_ever() {
    for (;;) {
      const auto before = sighting::clock::now();
      std::this_thread::sleep_for(period_);
      const auto now = sighting::clock::now();
      // The machine has slept, or had no processor for this thread, and then for others neither.
      if (now - before > 2 * period_ + milliseconds(5)) seen_.clear();
      try {
        for (const held_thread& each : look(now)) report(each);
      } catch (const std::bad_alloc&) {
        // The next look tells.
      }
    }
  }

 private:
  std::vector<held_thread> look(sighting::clock::time_point now) {
    std::vector<held_thread> found;
    sighting::clock::duration shortest = longest_period;
    for_each_runtime([&](roster_place& place) {
      const thread_state& thread = *place.runtime.load();
      const sighting::clock::duration limit = thread.settings().stall_report;
      if (limit <= limit.zero()) return;
      shortest = std::min(shortest, limit / 4);
      const auto seen = progress_of(thread);
      sighting& sight = seen_[&place];
      if (!sight.note(seen, place.thread, now, limit)) return;
      options told;
      told.on_notice = thread.settings().on_notice;
      found.push_back({place.thread, &thread, *seen, sight.held(now), sight.is_new(), told});
    });
    period_ = std::max<sighting::clock::duration>(shortest, milliseconds(1));
    return found;
  }

  static constexpr sighting::clock::duration longest_period = std::chrono::seconds(1);

  sighting::clock::duration period_ = milliseconds(1);
  std::map<const roster_place*, sighting> seen_;
};

void* watch_main(void*) noexcept {
  ::pthread_setname_np(::pthread_self(), name_of_stall_watch);
  watcher().go_on_for_ever();
}

}  // namespace

void watch_stalls() {
  watch_state& state = watch_state::get();
  const std::lock_guard guard(state.lock);
  if (state.begun) return;
  answer_for_frames();
  sigset_t all;
  ::sigfillset(&all);
  const signal_mask masked(SIG_BLOCK, all);
  pthread_t made{};
  const int error = ::pthread_create(&made, nullptr, &watch_main, nullptr);
  if (error != 0) throw std::system_error(error, std::generic_category(), "pthread_create");
  ::pthread_detach(made);
  state.begun = true;
}

void watch_no_more() noexcept {
  watch_state::start_over();
}

std::vector<stall_stats> stalls_so_far() {
  watch_state& state = watch_state::get();
  const std::lock_guard guard(state.lock);
  std::vector<stall_stats> found;
  for (const auto& [place, counted] : state.by_site) found.push_back(counted);
  return found;
}

}}}  // namespace motet::MOTET_ABI::detail
