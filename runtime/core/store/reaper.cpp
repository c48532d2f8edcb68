// SPDX-License-Identifier: MIT
// See core/store/reaper.hpp.
#include "core/store/reaper.hpp"

#include <motet/detail/core/handle.hpp>

#include "core/store/make_fiber.hpp"
#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

void reaper::reap_later(control_block& dead) noexcept {
  unreferred_.push_back(dead);
  start_reaping();
}

void reaper::destroy_later(value_slot&& value) noexcept {
  if (value.trivial()) {
    value.reset();  // so that its slot gives it to nobody
    return;
  }
  try {
    leftovers_.push_back(std::move(value));
    start_reaping();
  } catch (const std::bad_alloc&) {
    value.reset();
  }
}

control_block& reaper::make(const body_kind& kind, const char* description) {
  return make_fiber(thread_, fibers_, kind, {description, 0}, thread_.settings().stack_size);
}

void reaper::start(control_block& fiber) noexcept {
  join_family(fiber, fibers_);
  thread_.start(fiber);
  release_at_home(fiber);  // no handle refers to it
}

/// Without memory for a fiber all waits for the next one, or for the end.
void reaper::start_reaping() noexcept {
  if (reaping_) return;
  const auto body = [this] {
    reap();
    reaping_ = false;
  };
  try {
    spin(body, "motet's clean-up");
    reaping_ = true;
  } catch (const std::bad_alloc&) {
  }
}

void reaper::reap() noexcept {
  control_block& fiber = thread_.running();
  ++fiber.shields;
  for (;;) {
    if (control_block* dead = unreferred_.pop_front()) {
      if (control_block* parent = free_one(*dead)) release_at_home(*parent);
    } else if (!leftovers_.empty()) {
      const value_slot value = std::move(leftovers_.back());
      leftovers_.pop_back();
    } else {
      break;
    }
  }
  --fiber.shields;
}

void reaper::abandon(control_block& caller) noexcept {
  unreferred_.abandon();
  detail::abandon(fibers_);
  fibers_.owner = &caller;
  reaping_ = false;
}

}}}  // namespace motet::MOTET_ABI::detail
