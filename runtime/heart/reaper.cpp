// SPDX-License-Identifier: MIT
// What is to be destroyed while a poll or a switch goes on. A destructor of the user's may wait,
// which nobody can do there, and is nothing that a bystander should do: a fiber does it whose only
// purpose that is. So is what a poll has to say.
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "heart/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct thread_state::reaper {
  thread_state* thread;

  void operator()() const {
    thread->reap();
    thread->reaping_ = false;
  }
};

void thread_state::reap_later(control_block& dead) noexcept {
  unreferred_.push_back(dead);
  start_reaper();
}

void thread_state::drop_later(value_slot&& value) noexcept {
  if (value.trivial()) {
    value.reset();  // its slot must not give it to anybody
    return;
  }
  try {
    dropped_.push_back(std::move(value));
    start_reaper();
  } catch (const std::bad_alloc&) {
    value.reset();
  }
}

template <typename Body>
void thread_state::spin_for_the_house(Body&& body, const char* what) {
  using kept = std::decay_t<Body>;
  static_assert(std::is_nothrow_constructible_v<kept, Body>);
  control_block& fiber =
      make_fiber(house_, body_kind_of<kept, void>::kind, {what, 0}, options_.stack_size);
  ::new (fiber.body) kept(std::forward<Body>(body));
  join_family(fiber, house_);
  start(fiber);
  release(fiber);  // nobody has a handle to it
}

/// Without memory for a fiber all waits for the next one, or for the end.
void thread_state::start_reaper() noexcept {
  if (reaping_) return;
  try {
    spin_for_the_house(reaper{this}, "motet's clean-up");
    reaping_ = true;
  } catch (const std::bad_alloc&) {
  }
}

/// In a poll: what is told may wait in options.on_notice.
void thread_state::notice_later(std::string line) {
  spin_for_the_house([this, kept = std::move(line)] { notice(kept); }, "motet's notices");
}

void thread_state::spin_for_the_house(void (*body)(void*), void* argument, const char* what) {
  spin_for_the_house([body, argument] { body(argument); }, what);
}

void thread_state::reap() noexcept {
  ++running_->shields;
  for (;;) {
    if (control_block* dead = unreferred_.pop_front()) {
      if (control_block* parent = free_one(*dead)) release(*parent);
    } else if (!dropped_.empty()) {
      const value_slot value = std::move(dropped_.back());
      dropped_.pop_back();
    } else {
      break;
    }
  }
  --running_->shields;
}

}}}  // namespace motet::MOTET_ABI::detail
