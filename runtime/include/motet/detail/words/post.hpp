// SPDX-License-Identifier: MIT
// A post: a message that one thread leaves in the mailbox of another. It lies in memory of its
// sender, mostly in a frame.
#pragma once

#include <motet/detail/words/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class thread_state;

/// arrive() is called once, on the receiving thread, and may end the post's lifetime.
struct post {
  void (*arrive)(post&, thread_state&) noexcept = nullptr;
  post* next = nullptr;
};

}}}  // namespace motet::MOTET_ABI::detail
