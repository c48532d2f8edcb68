// SPDX-License-Identifier: MIT
// A message that one thread posts to the mailbox of another. It is part of a frame, or of an object
// that outlives it, so posting allocates nothing.
#pragma once

#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class thread_state;

/// handle_post() is called once, on the receiving thread, and may end the post's lifetime.
struct post {
  void (*handle_post)(post&, thread_state&) noexcept = nullptr;
  post* next = nullptr;
};

}}}  // namespace motet::MOTET_ABI::detail
