// SPDX-License-Identifier: MIT
// See testing/baton.hpp.
#include "testing/baton.hpp"

#include <algorithm>
#include <memory>
#include <motet/runtime/options.hpp>
#include <utility>

#include "core/mail/mailbox.hpp"
#include "core/thread_state.hpp"
#include "testing/order_of_world.hpp"
#include "testing/simulation.hpp"
#include "testing/world_backend.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

/// By a futex, which no library for unmodified code intercepts.
void runner::await_turn() noexcept {
  while (has_turn_.exchange(0, std::memory_order_acquire) == 0) has_turn_.wait(0);
}

void runner::begin() noexcept {
  await_turn();
  inside_.enter_thread();
}

void runner::adopt(detail::thread_state& home) {
  inside_.threads.adopt(home);
}

/// The first thread runs even if all sleep: it sees to it that something happens.
void runner::end() noexcept {
  baton& threads = inside_.threads;
  threads.remove(*this);
  if (threads.holder_ != this) return;
  inside_.leave_thread();
  if (!threads.pass_on()) threads.hand_over(threads.threads_.front());
}

baton::baton(simulation& inside)
    : inside_(inside), threads_{std::make_shared<runner>(inside, call_site{})} {
  holder_ = threads_.front().get();
}

std::shared_ptr<detail::simulated_thread> baton::add(options& settings) {
  settings.make_backend = [this](const backend_options&) { return inside_.make_backend(); };
  const detail::thread_state* const maker = detail::self();
  const call_site site = maker != nullptr ? maker->running().site : call_site{};
  return threads_.emplace_back(std::make_shared<runner>(inside_, site));
}

void baton::adopt(detail::thread_state& home) {
  home.recording = std::make_unique<detail::order_of_world>(inside_, home);
  home.recorded(true);
  home.schedule.ignore_time();
}

void baton::remove(const runner& ended) noexcept {
  std::erase_if(threads_, [&](const auto& each) { return each.get() == &ended; });
}

std::optional<call_site> baton::maker_of_other() const noexcept {
  if (!has_others()) return std::nullopt;
  return threads_[1]->maker_;
}

bool baton::can_run(const runner& one) const noexcept {
  if (!one.sleeps_until_.has_value() || *one.sleeps_until_ <= inside_.time) return true;
  if (one.kernel_->has_results() || one.home_->mail().filled()) return true;
  return &one == threads_.front().get() && inside_.function_runs_on();
}

/// The first choice is that this thread goes on.
bool baton::pass_on() noexcept {
  if (!has_others() && holder_ == threads_.front().get()) return can_run();
  ready_.clear();
  for (const auto& each : threads_) {
    if (!can_run(*each)) continue;
    const bool is_own = each.get() == holder_;
    ready_.insert(is_own ? ready_.begin() : ready_.end(), each);
  }
  if (ready_.empty()) return false;
  const auto count = static_cast<std::uint32_t>(ready_.size());
  std::shared_ptr<runner> next =
      ready_[count == 1 ? 0 : inside_.choices.decide(choice::thread, count)];
  ready_.clear();
  hand_over(std::move(next));
  return true;
}

/// A thread that has ended does not wait for another turn.
void baton::hand_over(std::shared_ptr<runner> next) noexcept {
  if (next.get() == holder_) return;
  const auto own = std::find_if(threads_.begin(), threads_.end(),
                                [&](const auto& each) { return each.get() == holder_; });
  const std::shared_ptr<runner> waits = own != threads_.end() ? *own : nullptr;
  holder_ = next.get();
  next->has_turn_.store(1, std::memory_order_release);
  next->has_turn_.notify_one();
  if (waits != nullptr) waits->await_turn();
}

void baton::begin_sleep(clock::time_point until) noexcept {
  holder_->home_ = detail::self();
  holder_->sleeps_until_ = until;
}

clock::time_point baton::end_of_sleep() const noexcept {
  clock::time_point first = clock::time_point::max();
  for (const auto& each : threads_) first = std::min(first, each->sleeps_until_.value_or(first));
  return first;
}

const std::vector<world_backend*>& baton::kernels() {
  kernels_.clear();
  for (const auto& each : threads_) {
    if (each->kernel_ != nullptr) kernels_.push_back(each->kernel_);
  }
  return kernels_;
}

}}}  // namespace motet::MOTET_ABI::testing
