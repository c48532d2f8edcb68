// SPDX-License-Identifier: MIT
// See motet/detail/fibers/coroutine_driver.hpp.
#include <algorithm>
#include <motet/detail/core/cold_part.hpp>
#include <motet/detail/core/internal_shield.hpp>
#include <motet/detail/fibers/coroutine_driver.hpp>
#include <motet/detail/sync/room_cases.hpp>
#include <motet/fibers/fiber.hpp>
#include <motet/fibers/local.hpp>
#include <optional>
#include <stdexcept>

#include "base/made_exception.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

coroutine_driver*& driver_here() {
  static const fiber_local<coroutine_driver*> driver(nullptr);
  return driver.get();
}

/// The body of a fiber that drives one coroutine from its first wait on.
class lone_driver {
 public:
  explicit lone_driver(std::unique_ptr<coroutine_wait> wait) noexcept : wait_(std::move(wait)) {}
  lone_driver(lone_driver&&) noexcept = default;
  lone_driver& operator=(lone_driver&&) = delete;
  /// If the fiber is cancelled before it starts, it never drives: the coroutine is resumed with an
  /// error.
  ~lone_driver() {
    if (wait_ == nullptr || wait_->coroutine == nullptr) return;
    try {
      wait_->coroutine->resume_with(
          made_exception<fiber_cancelled>("that was to run a coroutine", "it was cancelled"));
    } catch (...) {  // as the failure of a fiber that has not begun
    }
  }

  void operator()() {
    coroutine_driver alone;
    alone.add(std::move(wait_));
    alone.run(nullptr);
  }

 private:
  std::unique_ptr<coroutine_wait> wait_;
};

/// Gives `wait` to `driver` or, without one, to a new child of the running fiber.
/// Throws: std::bad_alloc, as spin().
void drive(std::unique_ptr<coroutine_wait> wait, coroutine_driver* driver) {
  if (driver != nullptr) {
    driver->add(std::move(wait));
  } else {
    wait->driver = nullptr;
    spin({.name = "coroutine"}, lone_driver(std::move(wait)));
  }
}

}  // namespace

coroutine_driver::coroutine_driver() : predecessor_(std::exchange(driver_here(), this)) {}

coroutine_driver::~coroutine_driver() {
  driver_here() = predecessor_;
  for (const auto& wait : waits_) {  // not empty only after std::bad_alloc
    if (wait->coroutine != nullptr) wait->coroutine->wait_ = nullptr;
  }
}

void coroutine_driver::add(std::unique_ptr<coroutine_wait>&& wait) {
  branches_.reserve(waits_.size() + 3);
  waits_.reserve(waits_.size() + 1);
  wait->driver = this;
  waits_.push_back(std::move(wait));
}

void suspended_coroutine::wait_for(std::unique_ptr<coroutine_wait> wait, void* frame,
                                   void (*resume)(void*)) {
  if (self_core() == nullptr) {
    throw std::logic_error("co_await: this thread has no fibers");
  }
  frame_ = frame;
  resume_ = resume;
  coroutine_wait& waits = *wait;
  drive(std::move(wait), driver_here());
  waits.coroutine = this;
  wait_ = &waits;
}

void suspended_coroutine::forget() noexcept {
  wait_->coroutine = nullptr;
  if (wait_->driver != nullptr) wait_->driver->note_destroyed();
}

void coroutine_driver::run(event* completion) {
  for (;;) {
    forget_destroyed();
    if (completion == nullptr ? waits_.empty() : completion->is_set()) break;
    wait_once(completion);
  }
  pass_on_rest();
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

/// Coroutines that nobody has awaited wait on.
void coroutine_driver::pass_on_rest() noexcept {
  while (!waits_.empty()) {
    std::unique_ptr<coroutine_wait> entry = std::move(waits_.back());
    waits_.pop_back();
    coroutine_wait& wait = *entry;
    suspended_coroutine* const coroutine = std::exchange(wait.coroutine, nullptr);
    if (coroutine == nullptr) continue;
    try {
      drive(std::move(entry), predecessor_);
      wait.coroutine = coroutine;
    } catch (...) {
      resume(*coroutine, std::current_exception());
    }
  }
}

void coroutine_driver::forget_destroyed() {
  std::erase_if(waits_, [](const auto& wait) { return wait->coroutine == nullptr; });
}

void coroutine_driver::wait_once(event* completion) {
  if (waits_.empty()) {
    // Others will resume the coroutine. No interruption reaches it, and its frame must stay.
    const internal_shield until_it_is_over;
    completion->wait();
    return;
  }
  branches_.clear();
  for (const auto& wait : waits_) branches_.push_back(&wait->branch());
  change_.reset();
  state_case<event> change_case(change_);
  branches_.push_back(&change_case);
  std::optional<state_case<event>> end;
  if (completion != nullptr) branches_.push_back(&end.emplace(*completion));
  const select_branch* winner = &waits_.front()->branch();
  std::exception_ptr error;
  try {
    winner = &select_one(branches_, false, "await of a coroutine");
  } catch (...) {
    error = std::current_exception();
  }
  const auto entry = std::find_if(waits_.begin(), waits_.end(),
                                  [&](const auto& wait) { return &wait->branch() == winner; });
  if (entry == waits_.end()) return;
  const auto wait = std::move(*entry);
  waits_.erase(entry);
  if (wait->coroutine != nullptr) resume(*wait->coroutine, std::move(error));
}

void coroutine_driver::resume(suspended_coroutine& coroutine, std::exception_ptr error) {
  try {
    coroutine.resume_with(std::move(error));
  } catch (...) {
    if (failure_ == nullptr) failure_ = std::current_exception();
  }
}

void suspended_coroutine::resume_with(std::exception_ptr error) {
  wait_ = nullptr;
  error_ = std::move(error);
  resume_(frame_);  // *this may have been destroyed
}

control_block& outcome_of(const fiber_ref& dead) {
  control_block& block = block_of(dead);
  if (here_core().is_home_of(block)) claim_failure(block);
  if (block.ended_by != outcome::value) throw_outcome(block);
  return block;
}

const control_block& fiber_here() {
  return traveller_of(here_core().running());
}

std::exception_ptr failure_for(const control_block& waiter) noexcept {
  const thread_core* thread = self_core();
  if (thread != nullptr && &traveller_of(thread->running()) == &waiter) {
    return std::current_exception();
  }
  return as_seen_by_others(std::current_exception(), "that ran a coroutine");
}

}}}  // namespace motet::MOTET_ABI::detail
