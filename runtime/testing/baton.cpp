// SPDX-License-Identifier: MIT
// See testing/baton.hpp.
#include "testing/baton.hpp"

#include <algorithm>
#include <exception>
#include <memory>
#include <motet/base/errors.hpp>
#include <motet/runtime/options.hpp>
#include <string_view>
#include <utility>

#include "core/mail/mailbox.hpp"
#include "core/thread_state.hpp"
#include "testing/hosts.hpp"
#include "testing/order_of_world.hpp"
#include "testing/simulation.hpp"
#include "testing/world_backend.hpp"
#include "unhandled/unhandled.hpp"

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
  if (!threads.pass_on(false)) threads.hand_over(threads.threads_.front());
}

baton::baton(simulation& inside)
    : inside_(inside), threads_{std::make_shared<runner>(inside, call_site{})} {
  holder_ = threads_.front().get();
}

namespace {

bool is_of_crash(const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const cancelled& end) {
    return end.reason() == std::string_view(host_crashed);
  } catch (...) {
    return false;
  }
}

}  // namespace

/// A job that ends with its host has not failed.
void baton::prepare(options& settings) {
  settings.make_backend = [this](const backend_options&) { return inside_.make_backend(); };
  settings.on_unhandled = [report = settings.on_unhandled](const std::exception_ptr& error) {
    if (is_of_crash(error)) return;
    if (report) return report(error);
    detail::report_unhandled(options(), error);
  };
}

std::shared_ptr<detail::simulated_thread> baton::add() {
  constexpr std::uint32_t priorities = 1'000;
  const bool by_priority = inside_.settings().how == order::pct;
  if (by_priority && !has_others())
    threads_.front()->priority_ = inside_.choices.decide(choice::thread, priorities);
  const detail::thread_state* const maker = detail::self();
  const call_site site = maker != nullptr ? maker->running().site : call_site{};
  const auto& added = threads_.emplace_back(std::make_shared<runner>(inside_, site));
  if (by_priority) added->priority_ = inside_.choices.decide(choice::thread, priorities);
  return added;
}

void baton::adopt(detail::thread_state& home) {
  home.recording = std::make_unique<detail::order_of_world>(inside_, home);
  home.recorded(true);
  home.schedule.ignore_time();
  if (!is_first()) home.main_fiber().site = holder_->maker_;
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

/// In a circle, from this thread or the next one.
void baton::list_ready(bool yields) {
  ready_.clear();
  const auto own = std::find_if(threads_.begin(), threads_.end(),
                                [&](const auto& each) { return each.get() == holder_; });
  const auto place = own == threads_.end() ? 0 : own - threads_.begin();
  const std::size_t first = static_cast<std::size_t>(place) + (yields ? 1 : 0);
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    const auto& each = threads_[(first + i) % threads_.size()];
    if (can_run(*each)) ready_.push_back(each);
  }
}

/// Source: see order_of_world.cpp for order::pct.
std::shared_ptr<runner> baton::choose(bool yields) {
  if (inside_.function_runs_on()) return threads_.front();  // which is to end
  list_ready(yields);
  if (ready_.size() < 2) return ready_.empty() ? nullptr : ready_.front();
  if (inside_.settings().how == order::pct) {
    return *std::max_element(ready_.begin(), ready_.end(), [](const auto& one, const auto& other) {
      return one->priority_ < other->priority_;
    });
  }
  return ready_[inside_.choices.decide(choice::thread, static_cast<std::uint32_t>(ready_.size()))];
}

bool baton::pass_on(bool yields) noexcept {
  const bool is_alone = !has_others() && holder_ == threads_.front().get();
  if (is_alone || made_in_ != detail::this_process()) return can_run();
  std::shared_ptr<runner> next = choose(yields);
  ready_.clear();
  if (next == nullptr) return false;
  const detail::thread_state* const home = detail::self();
  if (home != nullptr) inside_.report_difference(home->running().site);
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

void baton::pass_moment() {
  holder_->kernel_->pass_moment();
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
