// SPDX-License-Identifier: MIT
// Operations of io_uring that Debian's headers do not know yet, and the absence of an operation.
#pragma once

#include <cstdint>
#include <motet/detail/words/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// The ring has no such operation.
inline constexpr std::uint8_t ring_code_none = 255;

/// Linux 6.9. Source: io_uring_enter(2), IORING_OP_FTRUNCATE.
inline constexpr std::uint8_t ring_code_ftruncate = 55;

}}}  // namespace motet::MOTET_ABI::detail
