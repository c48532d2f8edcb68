// SPDX-License-Identifier: MIT
// A post: a message that one thread leaves in the mailbox of another. It needs no memory of its
// own: it is part of a frame, or of an object that outlives the message.
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
