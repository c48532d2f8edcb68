// SPDX-License-Identifier: MIT
// References to a block that threads other than its own hold.
#include <motet/detail/core/handle.hpp>

#include "core/mail/ask.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

void retain_remotely(control_block& fiber) noexcept {
  const std::lock_guard guard(fiber.mail->lock());
  ++requests_of(fiber).references;
}

void release_remotely(control_block& fiber) noexcept {
  const auto drop = [](remote_requests& requests) {
    --requests.references;
    return true;
  };
  if (!ask(fiber, drop)) release_after_end(fiber);
}

}}}  // namespace motet::MOTET_ABI::detail
