// SPDX-License-Identifier: MIT
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <motet/errors.hpp>
#include <motet/file.hpp>
#include <motet/io.hpp>
#include <string>

#include "heart/thread_state.hpp"
#include "io/io.hpp"
#include "io/path.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace {

std::span<const std::byte> bytes_of(std::string_view text) noexcept {
  return std::as_bytes(std::span(text));
}

/// Calls `part(rest)`, which returns how much it has moved, until nothing is left, an error comes,
/// or nothing is moved.
/// Returns: how much has been moved.
template <typename Byte, typename Part>
std::size_t move_all(std::span<Byte> buffer, Part part) {
  std::size_t moved = 0;
  while (moved < buffer.size()) {
    const std::size_t more = part(buffer.subspan(moved));
    if (more == 0) break;
    moved += more;
  }
  return moved;
}

/// A write of nothing is a call all the same: it finds out whether the file can be written to.
template <typename Part>
std::size_t write_whole(std::span<const std::byte> buffer, Part part) {
  return buffer.empty() ? part(buffer) : move_all(buffer, part);
}

operation appending(int fd, std::span<const std::byte> buffer) {
  operation op;
  op.kind = verb::pwrite;
  op.fd = fd;
  op.flags = RWF_APPEND;
  op.buffer = const_cast<std::byte*>(buffer.data());
  op.length = static_cast<std::uint32_t>(std::min(buffer.size(), detail::most_bytes));
  return op;
}

}  // namespace

unexpected_eof::unexpected_eof(std::size_t got, std::size_t wanted)
    : std::runtime_error("the end came after " + std::to_string(got) + " of " +
                         std::to_string(wanted) + " bytes"),
      got_(got) {}

file file::open(std::string_view path, int flags, mode_t mode) {
  return file(fd(io::openat(AT_FDCWD, detail::terminated(path).c_str(), flags, mode)));
}

file file::open(std::string_view path, int flags, mode_t mode, std::error_code& error) noexcept {
  try {
    return file(fd(io::openat(AT_FDCWD, detail::terminated(path).c_str(), flags, mode, error)));
  } catch (const std::invalid_argument&) {
    error = std::make_error_code(std::errc::invalid_argument);
  } catch (...) {
    error = std::make_error_code(std::errc::not_enough_memory);
  }
  return {};
}

std::size_t file::read(std::span<std::byte> buffer) {
  return io::read(fd_.get(), buffer);
}

std::size_t file::read(std::span<std::byte> buffer, std::error_code& error) noexcept {
  return io::read(fd_.get(), buffer, error);
}

void file::read_exactly(std::span<std::byte> buffer) {
  const std::size_t got = move_all(buffer, [&](auto rest) { return read(rest); });
  if (got < buffer.size()) throw unexpected_eof(got, buffer.size());
}

std::size_t file::read_exactly(std::span<std::byte> buffer, std::error_code& error) noexcept {
  error.clear();
  return move_all(buffer, [&](auto rest) { return read(rest, error); });
}

std::size_t file::write(std::span<const std::byte> buffer) {
  return io::write(fd_.get(), buffer);
}

std::size_t file::write(std::span<const std::byte> buffer, std::error_code& error) noexcept {
  return io::write(fd_.get(), buffer, error);
}

void file::write_all(std::span<const std::byte> buffer) {
  write_whole(buffer, [&](auto rest) { return write(rest); });
}

void file::write_all(std::string_view text) {
  write_all(bytes_of(text));
}

std::size_t file::write_all(std::span<const std::byte> buffer, std::error_code& error) noexcept {
  return write_whole(buffer, [&](auto rest) { return write(rest, error); });
}

std::size_t file::read_at(std::span<std::byte> buffer, off_t offset) {
  return io::pread(fd_.get(), buffer, offset);
}

std::size_t file::read_at(std::span<std::byte> buffer, off_t offset,
                          std::error_code& error) noexcept {
  return io::pread(fd_.get(), buffer, offset, error);
}

std::size_t file::write_at(std::span<const std::byte> buffer, off_t offset) {
  return io::pwrite(fd_.get(), buffer, offset);
}

std::size_t file::write_at(std::span<const std::byte> buffer, off_t offset,
                           std::error_code& error) noexcept {
  return io::pwrite(fd_.get(), buffer, offset, error);
}

void file::append(std::span<const std::byte> buffer) {
  write_whole(buffer, [&](auto rest) {
    operation op = appending(fd_.get(), rest);
    return detail::perform_throwing(op, "append");
  });
}

void file::append(std::string_view text) {
  append(bytes_of(text));
}

off_t file::size() const {
  struct ::statx found{};
  const int number = fd_.get();
  if (number < 0) detail::throw_errno(EBADF, "size", number);
  io::statx(number, "", AT_EMPTY_PATH, STATX_SIZE, found);
  return static_cast<off_t>(found.stx_size);
}

void file::resize(off_t size) {
  io::ftruncate(fd_.get(), size);
}

off_t file::seek(off_t offset, int whence) {
  const off_t position = ::lseek(fd_.get(), offset, whence);
  if (position < 0) detail::throw_errno(errno, "seek", fd_.get());
  return position;
}

void file::sync() {
  io::fsync(fd_.get());
}

void file::sync_data() {
  io::fdatasync(fd_.get());
}

void file::close() {
  const int number = fd_.release();
  io::close(number);
}

}}  // namespace motet::MOTET_ABI
