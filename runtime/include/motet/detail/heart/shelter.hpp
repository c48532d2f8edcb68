// SPDX-License-Identifier: MIT
// A part of motet's own code that nothing from outside interrupts.
#pragma once

#include <motet/detail/heart/control_block.hpp>
#include <motet/detail/heart/self.hpp>
#include <motet/detail/heart/switchpoint.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class shelter {
 public:
  shelter() noexcept {
    thread_core* thread = self_core();
    if (thread == nullptr) return;
    fiber_ = &thread->running();
    ++fiber_->shields;
  }
  shelter(const shelter&) = delete;
  shelter& operator=(const shelter&) = delete;
  ~shelter() {
    if (fiber_ != nullptr) --fiber_->shields;
  }

 private:
  control_block* fiber_ = nullptr;
};

}}}  // namespace motet::MOTET_ABI::detail
