// SPDX-License-Identifier: MIT
// See core/mail/remote_wait.hpp. The news is kept apart from the wait: an interruption may have
// ended that first.
#include "core/mail/remote_wait.hpp"

#include "core/event_recorder.hpp"
#include "core/mail/mailbox.hpp"
#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

remote_wait::remote_wait(const char* description, std::int64_t subject) noexcept
    : wait_(description, subject),
      home_(self()),
      fiber_(home_ == nullptr ? nullptr : &home_->running()) {
  handle_post = [](post& item, thread_state& home) noexcept {
    static_cast<remote_wait&>(item).come_home(home);
  };
}

void remote_wait::end() noexcept {
  if (home_ == nullptr) {
    event_.set();
  } else if (home_ == self()) {
    come_home(*home_);
  } else {
    note_post(*fiber_);
    fiber_->mail->push(*this);
  }
}

void remote_wait::come_home(thread_state& home) noexcept {
  if (home.is_excluded(*fiber_)) return;
  finished_ = true;
  if (waited_for_) home.resume(wait_, wake_reason::handed);
}

/// News that comes before its fiber waits for it makes no fiber runnable: the fiber may be in
/// another wait.
template <typename Park>
void remote_wait::wait(Park park) noexcept {
  if (home_ == nullptr) {
    event_.wait();
    finished_ = true;
  } else if (!finished_) {
    waited_for_ = true;
    park();
    waited_for_ = false;
  }
}

bool remote_wait::await() noexcept {
  wait([this] {
    wait_.reopen();  // its alarm may have ended it before
    home_->add_pending(*fiber_);
    home_->park(wait_);
    home_->remove_pending(*fiber_);
  });
  return finished_;
}

namespace {

struct alarm : timer {
  alarm(control_block& fiber_of_wait, wait_record& woken, clock::time_point deadline) noexcept
      : wait(&woken) {
    fiber = &fiber_of_wait;
    due = deadline;
    fire = [](timer& due_timer) noexcept {
      home_of(*due_timer.fiber).resume(*static_cast<alarm&>(due_timer).wait, wake_reason::handed);
    };
  }
  wait_record* wait;
};

}  // namespace

/// The fiber sleeps nowhere else: there is room for its timer.
remote_wait::result remote_wait::await_until(clock::time_point deadline) noexcept {
  if (home_ == nullptr) {
    finished_ = event_.wait_until(deadline);
    return finished_ ? result::over : result::late;
  }
  wait([&] {
    wait_.reopen();
    alarm late(*fiber_, wait_, deadline);
    if (deadline != clock::time_point::max()) home_->time.arm(late);
    home_->add_pending(*fiber_);
    home_->park(wait_);
    home_->remove_pending(*fiber_);
    home_->time.disarm(late);
  });
  if (finished_) return result::over;
  return wait_.ended() == wake_reason::interrupted ? result::interrupted : result::late;
}

void remote_wait::await_end() noexcept {
  wait([this] { home_->park_until_over(wait_); });
}

}}}  // namespace motet::MOTET_ABI::detail
