// SPDX-License-Identifier: MIT
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <motet/base/errors.hpp>
#include <motet/detail/threads/offloaded.hpp>
#include <motet/io/file.hpp>
#include <motet/io/io.hpp>
#include <string>

#include "base/is_disk.hpp"
#include "core/thread_state.hpp"
#include "io/exact_io.hpp"
#include "io/io.hpp"
#include "io/path.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace {

std::span<const std::byte> bytes_of(std::string_view text) noexcept {
  return std::as_bytes(std::span(text));
}

std::int32_t move_at(detail::thread_state& thread, verb kind, int fd, bool on_disk,
                     std::span<const std::byte> buffer, off_t offset) noexcept {
  if (offset < 0) return -EINVAL;
  operation op = detail::transfer(kind, fd, buffer);
  op.offset = static_cast<std::uint64_t>(offset);
  op.on_disk = on_disk;
  op.may_batch = thread.any_runnable();
  return detail::perform_now(thread, op, kind == verb::pread ? "pread" : "pwrite");
}

}  // namespace

file::file(fd descriptor) noexcept
    : fd_(std::move(descriptor)), on_disk_(detail::is_disk(fd_.get())) {}

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
  detail::thread_state& thread = detail::here();
  thread.deliver();
  const int number = fd_.get();  // the file may be moved while the call waits
  return detail::check_result(move_at(thread, verb::pread, number, on_disk_, buffer, offset),
                              "pread", number);
}

std::size_t file::read_at(std::span<std::byte> buffer, off_t offset,
                          std::error_code& error) noexcept {
  return detail::quietly(error, [&] {
    return move_at(detail::here(), verb::pread, fd_.get(), on_disk_, buffer, offset);
  });
}

std::size_t file::write_at(std::span<const std::byte> buffer, off_t offset) {
  detail::thread_state& thread = detail::here();
  thread.deliver();
  const int number = fd_.get();
  return detail::check_result(move_at(thread, verb::pwrite, number, on_disk_, buffer, offset),
                              "pwrite", number);
}

std::size_t file::write_at(std::span<const std::byte> buffer, off_t offset,
                           std::error_code& error) noexcept {
  return detail::quietly(error, [&] {
    return move_at(detail::here(), verb::pwrite, fd_.get(), on_disk_, buffer, offset);
  });
}

namespace {

/// A page: what lies within one needs no more room than there is, or is too short to matter.
constexpr std::size_t worth_reserving = 4096;

/// Has the disk keep room behind the file's end, as far as the file system can do that.
/// Returns: 0, or minus the errno value of a disk that has none.
std::int32_t reserve_space(int number, std::size_t size) {
  struct stat attributes{};
  if (::fstat(number, &attributes) != 0) return 0;  // the write will fail in the same way
  operation op;
  op.kind = verb::fallocate;
  op.fd = number;
  op.length = FALLOC_FL_KEEP_SIZE;
  op.offset = static_cast<std::uint64_t>(attributes.st_size);
  op.size = size;
  const std::int32_t result = detail::perform_now(op, "append");
  const bool full = result == -ENOSPC || result == -EDQUOT || result == -EFBIG;
  return full || result == -ECANCELED ? result : 0;
}

detail::progress append_whole(int number, std::span<const std::byte> buffer) {
  const detail::descriptor_guard guard(number);
  if (buffer.size() >= worth_reserving) {
    const std::int32_t error = reserve_space(number, buffer.size());
    if (error != 0) return {0, error};
    if (guard.closed()) return {0, -EBADF};
  }
  return detail::write_whole(number, buffer, [](int target, std::span<const std::byte> rest) {
    operation op = detail::transfer(verb::pwrite, target, rest);
    op.flags = RWF_APPEND;
    return detail::perform_now(op, "append");
  });
}

}  // namespace

void file::append(std::span<const std::byte> buffer) {
  detail::here().deliver();
  const int number = fd_.get();  // the file may be moved while the call waits
  const detail::progress result = append_whole(number, buffer);
  if (result.error == 0 || result.error == -ECANCELED) {
    detail::check_result(result.error, "append", number);
    return;
  }
  throw std::system_error(-result.error, std::system_category(),
                          "append to fd " + std::to_string(number) + ": " +
                              std::to_string(result.bytes) + " of " +
                              std::to_string(buffer.size()) + " bytes were appended");
}

std::size_t file::append(std::span<const std::byte> buffer, std::error_code& error) noexcept {
  return detail::progress_quietly(error, [&] { return append_whole(fd_.get(), buffer); });
}

void file::append(std::string_view text) {
  append(bytes_of(text));
}

off_t file::size() const {
  struct ::statx attributes{};
  const int number = fd_.get();
  if (number < 0) detail::throw_errno(EBADF, "size", number);
  io::statx(number, "", AT_EMPTY_PATH, STATX_SIZE, attributes);
  return static_cast<off_t>(attributes.stx_size);
}

void file::resize(off_t size) {
  io::ftruncate(fd_.get(), size);
}

/// A plain thread that reads or writes at the position holds its lock.
off_t file::seek(off_t offset, int whence) {
  const int number = fd_.get();
  int error = 0;
  const auto move = [&] {
    const off_t position = ::lseek(number, offset, whence);
    if (position < 0) error = errno;
    return position;
  };
  const bool held = detail::here().calls.any_on_thread(number);
  const off_t position = held ? detail::offload_to(detail::offload_pool::own, move) : move();
  if (position < 0) detail::throw_errno(error, "seek", number);
  return position;
}

void file::sync() {
  io::fsync(fd_.get());
}

void file::sync_data() {
  io::fdatasync(fd_.get());
}

namespace {

/// A file has no turns, but the kernel can copy it.
template <bool Writes>
constexpr detail::direction_calls file_calls{
    detail::plain_direction<file, Writes>.acquire,
    detail::plain_direction<file, Writes>.release,
    detail::plain_direction<file, Writes>.move,
    [](void* object) noexcept { return static_cast<file*>(object)->native_handle(); },
};

}  // namespace

detail::stream_direction file::input_direction() noexcept {
  return {this, &file_calls<false>};
}

detail::stream_direction file::output_direction() noexcept {
  return {this, &file_calls<true>};
}

void file::close() {
  const int number = fd_.release();
  io::close(number);
}

}}  // namespace motet::MOTET_ABI
