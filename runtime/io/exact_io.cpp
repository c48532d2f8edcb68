// SPDX-License-Identifier: MIT
// See io/exact_io.hpp: the forms of motet/io/io.hpp.
#include "io/exact_io.hpp"

#include <cerrno>
#include <motet/base/errors.hpp>
#include <motet/io/io.hpp>

namespace motet { inline namespace MOTET_ABI { namespace io {

namespace {

std::int32_t move_part(verb kind, int fd, std::span<const std::byte> bytes) {
  operation op = detail::transfer(kind, fd, bytes);
  return detail::perform_now(op, kind == verb::read ? "read_exactly" : "write_all");
}

detail::progress read_whole(int fd, std::span<std::byte> buffer) {
  if (buffer.empty()) return {0, detail::refused_by_pending() ? -ECANCELED : 0};
  return detail::move_all(fd, buffer, [](int source, std::span<std::byte> rest) {
    return move_part(verb::read, source, rest);
  });
}

detail::progress write_whole(int fd, std::span<const std::byte> buffer) {
  return detail::write_whole(fd, buffer, [](int target, std::span<const std::byte> rest) {
    return move_part(verb::write, target, rest);
  });
}

}  // namespace

void read_exactly(int fd, std::span<std::byte> buffer) {
  detail::here().deliver();
  const detail::progress result = read_whole(fd, buffer);
  detail::check_result(result.error, "read_exactly", fd);
  if (result.bytes < buffer.size()) throw unexpected_eof(result.bytes, buffer.size());
}

std::size_t read_exactly(int fd, std::span<std::byte> buffer, std::error_code& error) noexcept {
  return detail::progress_quietly(error, [&] { return read_whole(fd, buffer); });
}

void write_all(int fd, std::span<const std::byte> buffer) {
  detail::here().deliver();
  detail::check_result(write_whole(fd, buffer).error, "write_all", fd);
}

std::size_t write_all(int fd, std::span<const std::byte> buffer, std::error_code& error) noexcept {
  return detail::progress_quietly(error, [&] { return write_whole(fd, buffer); });
}

}}}  // namespace motet::MOTET_ABI::io
