// SPDX-License-Identifier: MIT
// A part of motet's own code that nothing from outside interrupts.
#pragma once

#include <motet/detail/core/control_block.hpp>
#include <motet/detail/core/self.hpp>
#include <motet/detail/core/switchpoint.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class internal_shield {
 public:
  internal_shield() noexcept {
    thread_core* thread = self_core();
    if (thread == nullptr) return;
    fiber_ = &thread->running();
    ++fiber_->shields;
  }
  internal_shield(const internal_shield&) = delete;
  internal_shield& operator=(const internal_shield&) = delete;
  ~internal_shield() {
    if (fiber_ != nullptr) --fiber_->shields;
  }

 private:
  control_block* fiber_ = nullptr;
};

}}}  // namespace motet::MOTET_ABI::detail
