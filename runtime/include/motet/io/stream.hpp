// SPDX-License-Identifier: MIT
// What reader, writer, copy() and proxy() ask of a stream.
#pragma once

#include <sys/socket.h>

#include <concepts>
#include <cstddef>
#include <motet/detail/base/abi.hpp>
#include <span>
#include <system_error>

namespace motet { inline namespace MOTET_ABI {

/// Bytes in two directions: net::tcp_stream, net::unix_stream, pipe, file, and a program's own
/// types with the same interface. read() returns 0 at the end; write() may write only a part, but
/// writing none of a non-empty buffer counts as an I/O error. The forms with a
/// std::error_code throw nothing, and set it to operation_canceled when something is pending for
/// the fiber. shutdown(SHUT_WR) says that no more will be written.
template <typename S>
concept stream = requires(S& s, std::span<std::byte> buffer, std::span<const std::byte> bytes,
                          std::error_code& error) {
  { s.read(buffer) } -> std::convertible_to<std::size_t>;
  { s.read(buffer, error) } -> std::convertible_to<std::size_t>;
  { s.write(bytes, error) } -> std::convertible_to<std::size_t>;
  s.write_all(bytes);
  s.shutdown(SHUT_WR);
};

}}  // namespace motet::MOTET_ABI
