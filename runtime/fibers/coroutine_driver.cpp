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
  explicit lone_driver(std::unique_ptr<coroutine_wait> what) noexcept : what_(std::move(what)) {}
  lone_driver(lone_driver&&) noexcept = default;
  lone_driver& operator=(lone_driver&&) = delete;
  /// If the fiber is cancelled before it starts, it never drives: the coroutine is resumed with an
  /// error.
  ~lone_driver() {
    if (what_ == nullptr || what_->of == nullptr) return;
    try {
      what_->of->resume_with(
          made_exception<fiber_cancelled>("that was to run a coroutine", "it was cancelled"));
    } catch (...) {  // as the failure of a fiber that has not begun
    }
  }

  void operator()() {
    coroutine_driver alone;
    alone.add(std::move(what_));
    alone.run(nullptr);
  }

 private:
  std::unique_ptr<coroutine_wait> what_;
};

/// Gives `what` to `driver` or, without one, to a new child of the running fiber.
/// Throws: std::bad_alloc, as spin().
void drive(std::unique_ptr<coroutine_wait> what, coroutine_driver* driver) {
  if (driver != nullptr) {
    driver->add(std::move(what));
  } else {
    what->by = nullptr;
    spin({.name = "coroutine"}, lone_driver(std::move(what)));
  }
}

}  // namespace

coroutine_driver::coroutine_driver() : before_(std::exchange(driver_here(), this)) {}

coroutine_driver::~coroutine_driver() {
  driver_here() = before_;
  for (const auto& each : waits_) {  // not empty only after std::bad_alloc
    if (each->of != nullptr) each->of->wait_ = nullptr;
  }
}

void coroutine_driver::add(std::unique_ptr<coroutine_wait>&& what) {
  branches_.reserve(waits_.size() + 3);
  waits_.reserve(waits_.size() + 1);
  what->by = this;
  waits_.push_back(std::move(what));
}

void suspended_coroutine::wait_for(std::unique_ptr<coroutine_wait> what, void* frame,
                                   void (*resume)(void*)) {
  if (self_core() == nullptr) {
    throw std::logic_error("co_await: this thread has no fibers");
  }
  frame_ = frame;
  resume_ = resume;
  coroutine_wait& waits = *what;
  drive(std::move(what), driver_here());
  waits.of = this;
  wait_ = &waits;
}

void suspended_coroutine::forget() noexcept {
  wait_->of = nullptr;
  if (wait_->by != nullptr) wait_->by->note_destroyed();
}

void coroutine_driver::run(event* done) {
  for (;;) {
    forget_destroyed();
    if (done == nullptr ? waits_.empty() : done->is_set()) break;
    wait_once(done);
  }
  pass_on_rest();
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

/// Coroutines that nobody has awaited wait on.
void coroutine_driver::pass_on_rest() noexcept {
  while (!waits_.empty()) {
    std::unique_ptr<coroutine_wait> each = std::move(waits_.back());
    waits_.pop_back();
    coroutine_wait& wait = *each;
    suspended_coroutine* const of = std::exchange(wait.of, nullptr);
    if (of == nullptr) continue;
    try {
      drive(std::move(each), before_);
      wait.of = of;
    } catch (...) {
      resume(*of, std::current_exception());
    }
  }
}

void coroutine_driver::forget_destroyed() {
  std::erase_if(waits_, [](const auto& each) { return each->of == nullptr; });
}

void coroutine_driver::wait_once(event* done) {
  if (waits_.empty()) {
    // Others will resume the coroutine. No interruption reaches it, and its frame must stay.
    const internal_shield until_it_is_over;
    done->wait();
    return;
  }
  branches_.clear();
  for (const auto& each : waits_) branches_.push_back(&each->branch());
  changed_.reset();
  ready_room_case<event> changed(changed_);
  branches_.push_back(&changed);
  std::optional<ready_room_case<event>> end;
  if (done != nullptr) branches_.push_back(&end.emplace(*done));
  const select_branch* taken = &waits_.front()->branch();
  std::exception_ptr error;
  try {
    taken = &take_one(branches_, false, "await of a coroutine");
  } catch (...) {
    error = std::current_exception();
  }
  const auto over = std::find_if(waits_.begin(), waits_.end(),
                                 [&](const auto& each) { return &each->branch() == taken; });
  if (over == waits_.end()) return;
  const auto wait = std::move(*over);
  waits_.erase(over);
  if (wait->of != nullptr) resume(*wait->of, std::move(error));
}

void coroutine_driver::resume(suspended_coroutine& one, std::exception_ptr error) {
  try {
    one.resume_with(std::move(error));
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

std::exception_ptr failure_for(const control_block& awaiting) noexcept {
  const thread_core* thread = self_core();
  if (thread != nullptr && &traveller_of(thread->running()) == &awaiting) {
    return std::current_exception();
  }
  return as_seen_by_others(std::current_exception(), "that ran a coroutine");
}

}}}  // namespace motet::MOTET_ABI::detail
