// SPDX-License-Identifier: MIT
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <motet/errors.hpp>
#include <motet/file.hpp>
#include <motet/io.hpp>
#include <motet/offload.hpp>
#include <string>

#include "heart/thread_state.hpp"
#include "io/io.hpp"
#include "io/path.hpp"
#include "io/whole_buffer.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace {

std::span<const std::byte> bytes_of(std::string_view text) noexcept {
  return std::as_bytes(std::span(text));
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
  io::read_exactly(fd_.get(), buffer);
}

std::size_t file::read_exactly(std::span<std::byte> buffer, std::error_code& error) noexcept {
  return io::read_exactly(fd_.get(), buffer, error);
}

std::size_t file::write(std::span<const std::byte> buffer) {
  return io::write(fd_.get(), buffer);
}

std::size_t file::write(std::span<const std::byte> buffer, std::error_code& error) noexcept {
  return io::write(fd_.get(), buffer, error);
}

void file::write_all(std::span<const std::byte> buffer) {
  io::write_all(fd_.get(), buffer);
}

void file::write_all(std::string_view text) {
  write_all(bytes_of(text));
}

std::size_t file::write_all(std::span<const std::byte> buffer, std::error_code& error) noexcept {
  return io::write_all(fd_.get(), buffer, error);
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
  detail::here().deliver();
  const int number = fd_.get();  // the file may be moved while the call waits
  const auto part = [](int to, std::span<const std::byte> rest) {
    operation op = appending(to, rest);
    return detail::perform_now(op, "append");
  };
  detail::settled(detail::write_whole(number, buffer, part).error, "append", number);
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

/// A plain thread that reads or writes at the position holds its lock.
off_t file::seek(off_t offset, int whence) {
  const int number = fd_.get();
  int error = 0;
  const auto move = [&] {
    const off_t moved = ::lseek(number, offset, whence);
    if (moved < 0) error = errno;
    return moved;
  };
  const bool held = detail::here().calls.any_on_thread(number);
  const off_t position = held ? motet::offload(move) : move();
  if (position < 0) detail::throw_errno(error, "seek", number);
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
