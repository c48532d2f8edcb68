// SPDX-License-Identifier: MIT
// See posix/signal_watch.hpp. A handler interrupts the thread anywhere, so it only counts, and
// posts: the thread looks at its fibers' waits when it next polls.
#include "posix/signal_watch.hpp"

#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <motet/detail/core/pending_operation.hpp>

#include "core/in_flight.hpp"
#include "core/mail/mailbox.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

struct thread_signals {
  list<signal_watch, signal_watch_tag> watches;
  std::atomic<std::uint64_t> handled{0};
  std::atomic<std::uint64_t> handled_without_restart{0};
  post news;
  std::atomic<const mailbox*> posted_to{nullptr};

  std::uint64_t count_for(on_signal effect) const noexcept {
    if (effect == on_signal::go_on) return 0;
    const auto& count = effect == on_signal::fail ? handled : handled_without_restart;
    return count.load(std::memory_order_relaxed);
  }
};

thread_signals& of_thread() noexcept {
  static thread_local thread_signals signals;
  return signals;
}

/// In a forked child no fiber waits in a call but the one that has called fork(2), which does not.
[[gnu::constructor]] void forget_in_child() noexcept {
  ::pthread_atfork(nullptr, nullptr, [] {
    of_thread().watches.abandon();
    of_thread().posted_to.store(nullptr, std::memory_order_relaxed);
  });
}

void look_at_all(post&, thread_state& home) noexcept {
  thread_signals& signals = of_thread();
  signals.posted_to.store(nullptr, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  for (auto* watch = signals.watches.front(); watch != nullptr;
       watch = signals.watches.next(*watch))
    watch->look(home);
}

}  // namespace

signal_watch::signal_watch(on_signal effect, wait_record& wait) noexcept
    : signal_watch(effect, &wait, nullptr) {}

signal_watch::signal_watch(on_signal effect, const operation& op) noexcept
    : signal_watch(effect, nullptr, &op) {}

/// A handler that runs after the count is read finds the watch in the list.
signal_watch::signal_watch(on_signal effect, wait_record* wait, const operation* op) noexcept
    : effect_(effect), wait_(wait), op_(op) {
  thread_signals& signals = of_thread();
  signals.watches.push_back(*this);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  seen_ = signals.count_for(effect);
}

/// Returns: the wait that a handler may end: not that for the end of a cancelled operation.
wait_record* signal_watch::open_wait() const noexcept {
  wait_record* wait = wait_;
  if (op_ != nullptr) {
    auto* const request = static_cast<pending_operation*>(op_->owner);
    if (request == nullptr || !in_flight::has(*request) || request->plain_call != nullptr)
      return nullptr;
    wait = &request->wait;
  }
  return wait->fiber == nullptr || wait->cancelling ? nullptr : wait;
}

void signal_watch::look(thread_state& home) noexcept {
  if (seen_ == of_thread().count_for(effect_)) return;
  if (wait_record* const wait = open_wait())
    ended_ = home.resume(*wait, wake_reason::time) || ended_;
}

void note_handled_signal(bool restarts) noexcept {
  thread_state* const home = self();
  if (home == nullptr) return;
  thread_signals& signals = of_thread();
  signals.handled.fetch_add(1, std::memory_order_relaxed);
  if (!restarts) signals.handled_without_restart.fetch_add(1, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (signals.watches.empty()) return;
  mailbox& mail = home->mail();
  if (signals.posted_to.exchange(&mail) == &mail) return;
  signals.news.handle_post = &look_at_all;
  const int error = errno;
  if (!mail.push(signals.news)) signals.posted_to.store(nullptr, std::memory_order_relaxed);
  errno = error;
}

}}}  // namespace motet::MOTET_ABI::detail
