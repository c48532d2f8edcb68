// SPDX-License-Identifier: MIT
// Something left for another thread, in the frame or the node of whoever leaves it.
#pragma once

#include <motet/detail/words/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class thread_state;

/// arrive() is called on the thread it was left for, once, and may end its lifetime.
struct post {
  void (*arrive)(post&, thread_state&) noexcept = nullptr;
  post* next = nullptr;
};

}}}  // namespace motet::MOTET_ABI::detail
