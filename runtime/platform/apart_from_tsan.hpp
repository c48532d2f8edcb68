// SPDX-License-Identifier: MIT
// ThreadSanitizer puts functions of its own before those of motet-posix. While one of them is in a
// call that may block, it disregards atomic operations, and would report races that do not exist.
// So a fiber in such a call is another fiber to it.
#pragma once

#include <motet/detail/platform/sanitizers.hpp>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace detail {

#if defined(MOTET_TSAN)

/// In the frame of a call. Inline: a function must end in the fiber in which it began.
class apart_from_tsan {
 public:
  /// `shadow`: of the running fiber; null if no fiber makes the call.
  [[gnu::always_inline]] explicit apart_from_tsan(sanitizer::context_state* shadow) noexcept
      : shadow_(shadow) {
    if (shadow_ == nullptr) return;
    sanitizer::context_state masked;
    sanitizer::hold_signals(masked);
    before_ = __tsan_get_current_fiber();
    replaced_ = std::exchange(shadow_->fiber, __tsan_create_fiber(0));
    __tsan_switch_to_fiber(shadow_->fiber, 0);
    sanitizer::let_signals_come(masked);
  }
  apart_from_tsan(const apart_from_tsan&) = delete;
  apart_from_tsan& operator=(const apart_from_tsan&) = delete;
  [[gnu::always_inline]] ~apart_from_tsan() {
    if (shadow_ == nullptr) return;
    sanitizer::context_state masked;
    sanitizer::hold_signals(masked);
    __tsan_switch_to_fiber(before_, 0);
    __tsan_destroy_fiber(std::exchange(shadow_->fiber, replaced_));
    sanitizer::let_signals_come(masked);
  }

 private:
  sanitizer::context_state* shadow_;
  void* before_ = nullptr;
  void* replaced_ = nullptr;  // another one in a signal handler during a switch
};

#else

struct apart_from_tsan {
  explicit constexpr apart_from_tsan(sanitizer::context_state*) noexcept {}
};

#endif

}}}  // namespace motet::MOTET_ABI::detail
