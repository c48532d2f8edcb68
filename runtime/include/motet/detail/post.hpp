// SPDX-License-Identifier: MIT
// Something left for another thread, in the frame or the node of whoever leaves it.
#pragma once

#include <motet/detail/abi.hpp>

namespace motet::inline MOTET_ABI::detail {

class thread_state;

/// arrive() is called on the thread it was left for, once, and may end its lifetime.
struct post {
  void (*arrive)(post&, thread_state&) noexcept = nullptr;
  post* next = nullptr;
};

}  // namespace motet::inline MOTET_ABI::detail
