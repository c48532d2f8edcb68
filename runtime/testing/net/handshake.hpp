// SPDX-License-Identifier: MIT
// How a connection comes about between two machines of a simulated network.
#pragma once

#include <memory>

#include "testing/net/network.hpp"
#include "testing/net/stream_socket.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

/// Sets the attempt's result, later. A handshake that is not answered is sent again after 1 s, 2 s,
/// 4 s and so on.
void begin_handshake(network& inside, const std::shared_ptr<connecting>& attempt);

}}}  // namespace motet::MOTET_ABI::testing
