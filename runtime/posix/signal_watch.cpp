// SPDX-License-Identifier: MIT
// See posix/signal_watch.hpp. A handler interrupts the thread anywhere, so it only counts, and
// posts: the thread looks at its fibers' waits when it next polls.
#include "posix/signal_watch.hpp"

#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <motet/detail/base/post.hpp>
#include <motet/detail/core/pending_operation.hpp>

#include "core/in_flight.hpp"
#include "core/mail/mailbox.hpp"
#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// Changed by the thread and its handlers alone; usable before the thread's constructors have run.
struct thread_signals {
  signal_watch* first = nullptr;
  std::atomic<std::uint64_t> handled{0};
  std::atomic<std::uint64_t> handled_without_restart{0};
  post news;
  std::atomic<const mailbox*> posted_to{nullptr};
};

[[gnu::tls_model("initial-exec")]] constinit thread_local thread_signals signals;

std::uint64_t count_for(on_signal effect) noexcept {
  if (effect == on_signal::go_on) return 0;
  const auto& count = effect == on_signal::fail ? signals.handled : signals.handled_without_restart;
  return count.load(std::memory_order_relaxed);
}

/// In a forked child no fiber waits in a call but the one that has called fork(2), which does not.
[[gnu::constructor]] void forget_in_child() noexcept {
  ::pthread_atfork(nullptr, nullptr, [] {
    signals.first = nullptr;
    signals.posted_to.store(nullptr, std::memory_order_relaxed);
  });
}

void look_at_all(post&, thread_state& home) noexcept {
  signals.posted_to.store(nullptr, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  for (signal_watch* watch = signals.first; watch != nullptr; watch = watch->next())
    watch->look(home);
}

}  // namespace

signal_start::signal_start(on_signal effect) noexcept : effect_(effect), seen_(count_for(effect)) {}

bool signal_start::passed() const noexcept {
  return seen_ != count_for(effect_);
}

/// A handler that runs from now on finds the watch in the list; for earlier ones, the caller asks
/// `start` afterwards.
signal_watch::signal_watch(const signal_start& start, wait_record* wait,
                           const operation* op) noexcept
    : start_(start), wait_(wait), op_(op), next_(signals.first) {
  if (next_ != nullptr) next_->previous_ = this;
  signals.first = this;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

signal_watch::~signal_watch() {
  (previous_ == nullptr ? signals.first : previous_->next_) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
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
  if (!start_.passed()) return;
  if (wait_record* const wait = open_wait())
    ended_ = home.resume(*wait, wake_reason::time) || ended_;
}

void note_handled_signal(thread_state& home, bool restarts) noexcept {
  signals.handled.fetch_add(1, std::memory_order_relaxed);
  if (!restarts) signals.handled_without_restart.fetch_add(1, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (signals.first == nullptr) return;
  mailbox& mail = home.mail();
  if (signals.posted_to.exchange(&mail) == &mail) return;
  signals.news.handle_post = &look_at_all;
  const int error = errno;
  if (!mail.push(signals.news)) signals.posted_to.store(nullptr, std::memory_order_relaxed);
  errno = error;
}

}}}  // namespace motet::MOTET_ABI::detail
