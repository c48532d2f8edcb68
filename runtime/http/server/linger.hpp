// SPDX-License-Identifier: MIT
// The end of a connection whose client may still be sending.
#pragma once

#include <motet/detail/io/any_stream.hpp>
#include <motet/detail/io/read_buffer.hpp>
#include <stop_token>

namespace motet { inline namespace MOTET_ABI { namespace http {

/// Ends the server's direction, and drops what the client sends until it ends its own. To close at
/// once would be a reset, which overtakes the answer: many clients read it only when they have sent
/// their whole request. Gives up after a second without a byte, or of few bytes, after a second
/// if `drain` was requested, and at a limit of time and bytes.
/// Switchpoint. Source: RFC 9112, 9.6.
void linger(detail::any_stream& stream, detail::read_buffer& input,
            const std::stop_token& drain) noexcept;

}}}  // namespace motet::MOTET_ABI::http
