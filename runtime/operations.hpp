// SPDX-License-Identifier: MIT
// How a verb has its operation performed: throwing, or with an error code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <motet/backend.hpp>
#include <system_error>

namespace motet::detail {

/// Returns: the operation's result; -ECANCELED without effect if something is pending; -EBADF
///          without asking the kernel for a negative descriptor.
/// Throws: as here().
std::int32_t perform_now(operation& op, const char* what);

/// Throws: std::system_error; what is pending for the fiber.
std::size_t perform_throwing(operation& op, const char* what);

/// What is pending stays so: operation_canceled.
std::size_t perform_quietly(operation& op, const char* what, std::error_code& error) noexcept;

}  // namespace motet::detail
