// SPDX-License-Identifier: MIT
// Operations and flags of io_uring that Debian's headers do not know yet, and the absence of an
// operation.
#pragma once

#include <cstdint>
#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// The ring has no such operation.
inline constexpr std::uint8_t ring_code_none = 255;

/// Linux 6.9. Source: io_uring_enter(2), IORING_OP_FTRUNCATE.
inline constexpr std::uint8_t ring_code_ftruncate = 55;

/// Linux 6.6: the ring has no array of indices between the kernel and the entries.
/// Source: io_uring_setup(2), IORING_SETUP_NO_SQARRAY.
inline constexpr unsigned setup_no_sqarray = 1U << 16;
/// Linux 6.12: a wait ends at a time of the monotonic clock, not after a span.
/// Source: io_uring_enter(2), IORING_ENTER_ABS_TIMER.
inline constexpr unsigned enter_absolute_timer = 1U << 5;
/// Linux 6.15: a thread that waits does not count as one that waits for a disk.
/// Source: io_uring_enter(2), IORING_ENTER_NO_IOWAIT, IORING_FEAT_NO_IOWAIT.
inline constexpr unsigned enter_no_iowait = 1U << 7;
inline constexpr unsigned feature_no_iowait = 1U << 17;

}}}  // namespace motet::MOTET_ABI::detail
