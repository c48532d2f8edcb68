// SPDX-License-Identifier: MIT
// The wait for a call that a plain thread makes; see core/hooks.hpp.
#pragma once

#include "core/mail/remote_wait.hpp"
#include "platform/offload/blocking_pool.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

bool await_thread(remote_wait& end, blocking_call& call) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
