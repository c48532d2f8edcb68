// SPDX-License-Identifier: MIT
// See io/whole_buffer.hpp: the forms of motet/io.hpp.
#include "io/whole_buffer.hpp"

#include <motet/errors.hpp>
#include <motet/io.hpp>

namespace motet { inline namespace MOTET_ABI { namespace io {

void read_exactly(int fd, std::span<std::byte> buffer) {
  const std::size_t got = detail::move_all(buffer, [&](auto rest) { return read(fd, rest); });
  if (got < buffer.size()) throw unexpected_eof(got, buffer.size());
}

std::size_t read_exactly(int fd, std::span<std::byte> buffer, std::error_code& error) noexcept {
  error.clear();
  return detail::move_all(buffer, [&](auto rest) { return read(fd, rest, error); });
}

void write_all(int fd, std::span<const std::byte> buffer) {
  detail::write_whole(buffer, [&](auto rest) { return write(fd, rest); });
}

std::size_t write_all(int fd, std::span<const std::byte> buffer, std::error_code& error) noexcept {
  return detail::write_whole(buffer, [&](auto rest) { return write(fd, rest, error); });
}

}}}  // namespace motet::MOTET_ABI::io
