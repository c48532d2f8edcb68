// SPDX-License-Identifier: MIT
// See motet/detail/io/file_verbs.hpp.
#include <limits.h>

#include <algorithm>
#include <cerrno>
#include <motet/detail/io/file_verbs.hpp>
#include <motet/errors.hpp>
#include <motet/fd.hpp>
#include <stdexcept>
#include <string>

#include "heart/thread_state.hpp"
#include "io/io.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace detail { namespace {

operation on_file(verb kind, int fd) {
  operation op;
  op.kind = kind;
  op.fd = fd;
  return op;
}

operation placed(verb kind, int fd, std::span<const std::byte> buffer, off_t offset) {
  operation op = on_file(kind, fd);
  op.buffer = const_cast<std::byte*>(buffer.data());
  op.length = static_cast<std::uint32_t>(std::min(buffer.size(), most_bytes));
  op.offset = static_cast<std::uint64_t>(offset);
  return op;
}

operation placed(verb kind, int fd, std::span<const iovec> buffers, off_t offset) {
  operation op = on_file(kind, fd);
  op.vectors = buffers.data();
  op.length = static_cast<std::uint32_t>(buffers.size());
  op.offset = static_cast<std::uint64_t>(offset);
  return op;
}

operation synchronisation(int fd, int flags) {
  operation op = on_file(verb::fsync, fd);
  op.flags = flags;
  return op;
}

operation allocation(int fd, int mode, off_t offset, off_t size) {
  operation op = on_file(verb::fallocate, fd);
  op.length = static_cast<std::uint32_t>(mode);
  op.offset = static_cast<std::uint64_t>(offset);
  op.size = static_cast<std::uint64_t>(size);
  return op;
}

operation truncation(int fd, off_t size) {
  operation op = on_file(verb::ftruncate, fd);
  op.offset = static_cast<std::uint64_t>(size);
  return op;
}

/// `number` is the mode, or the mask, that the verb has.
operation on_path(verb kind, int directory, const char* path, int flags, unsigned number = 0) {
  operation op = on_file(kind, directory);
  op.path = path;
  op.flags = flags;
  op.length = number;
  return op;
}

operation inquiry(int directory, const char* path, int flags, unsigned mask,
                  struct ::statx& status) {
  operation op = on_path(verb::statx, directory, path, flags, mask);
  op.status = &status;
  return op;
}

/// An operation has one descriptor, of which a fiber that closes it knows. So the other directory
/// is a copy, which no other fiber can close.
class renaming {
 public:
  renaming(int directory, const char* path, int new_directory, const char* new_path,
           unsigned flags) noexcept
      : op(on_path(verb::renameat, directory, path, static_cast<int>(flags),
                   static_cast<unsigned>(new_directory))) {
    op.new_path = new_path;
    if (new_directory == AT_FDCWD || new_directory == directory) return;
    copy_ = fd(::fcntl(new_directory, F_DUPFD_CLOEXEC, 0));
    if (!copy_) refusal_ = -errno;
    op.length = static_cast<unsigned>(copy_.get());
  }

  /// Returns: 0, or minus an errno value: there is no such directory, or no number for the copy.
  std::int32_t refusal() const noexcept { return refusal_; }

  operation op;

 private:
  fd copy_;
  std::int32_t refusal_ = 0;
};

/// The kernel takes -1 for the position of the descriptor.
void check_offset(off_t offset, const char* what, int fd) {
  if (offset < 0) throw_errno(EINVAL, what, fd);
}

void check_count(std::span<const iovec> buffers) {
  if (buffers.size() > IOV_MAX) throw std::invalid_argument("more than IOV_MAX buffers");
}

/// Returns: `bad`, with the error set.
bool refused(bool bad, std::error_code& error) noexcept {
  if (bad) error = std::make_error_code(std::errc::invalid_argument);
  return bad;
}

/// As settled(), but the error names the path.
std::size_t settled_on_path(std::int32_t result, const operation& op, const char* what) {
  if (result >= 0 || result == -ECANCELED) return settled(result, what, op.fd);
  const std::string path = op.path == nullptr ? "no path" : "\"" + std::string(op.path) + "\"";
  throw std::system_error(-result, std::system_category(), std::string(what) + " of " + path);
}

/// A null path is refused here: the calls of the C library are declared never to get one.
std::int32_t perform_path_now(operation& op, const char* what) {
  return op.path == nullptr ? -EFAULT : perform_now(op, what);
}

std::size_t perform_on_path(operation& op, const char* what) {
  here().deliver();
  return settled_on_path(perform_path_now(op, what), op, what);
}

std::size_t perform_on_path_quietly(operation& op, const char* what,
                                    std::error_code& error) noexcept {
  return quietly(error, [&] { return perform_path_now(op, what); });
}

std::int32_t perform(renaming& wanted) {
  if (wanted.refusal() != 0) return wanted.refusal();
  return wanted.op.new_path == nullptr ? -EFAULT : perform_path_now(wanted.op, "renameat");
}

}}  // namespace detail

namespace io {

using detail::perform_on_path;
using detail::perform_on_path_quietly;
using detail::perform_quietly;
using detail::perform_throwing;

std::size_t pread(int fd, std::span<std::byte> buffer, off_t offset) {
  detail::check_offset(offset, "pread", fd);
  operation op = detail::placed(verb::pread, fd, buffer, offset);
  return perform_throwing(op, "pread");
}

std::size_t pread(int fd, std::span<std::byte> buffer, off_t offset,
                  std::error_code& error) noexcept {
  if (detail::refused(offset < 0, error)) return 0;
  operation op = detail::placed(verb::pread, fd, buffer, offset);
  return perform_quietly(op, "pread", error);
}

std::size_t pwrite(int fd, std::span<const std::byte> buffer, off_t offset) {
  detail::check_offset(offset, "pwrite", fd);
  operation op = detail::placed(verb::pwrite, fd, buffer, offset);
  return perform_throwing(op, "pwrite");
}

std::size_t pwrite(int fd, std::span<const std::byte> buffer, off_t offset,
                   std::error_code& error) noexcept {
  if (detail::refused(offset < 0, error)) return 0;
  operation op = detail::placed(verb::pwrite, fd, buffer, offset);
  return perform_quietly(op, "pwrite", error);
}

std::size_t preadv(int fd, std::span<const iovec> buffers, off_t offset) {
  detail::check_count(buffers);
  detail::check_offset(offset, "preadv", fd);
  operation op = detail::placed(verb::preadv, fd, buffers, offset);
  return perform_throwing(op, "preadv");
}

std::size_t preadv(int fd, std::span<const iovec> buffers, off_t offset,
                   std::error_code& error) noexcept {
  if (detail::refused(offset < 0 || buffers.size() > IOV_MAX, error)) return 0;
  operation op = detail::placed(verb::preadv, fd, buffers, offset);
  return perform_quietly(op, "preadv", error);
}

std::size_t pwritev(int fd, std::span<const iovec> buffers, off_t offset) {
  detail::check_count(buffers);
  detail::check_offset(offset, "pwritev", fd);
  operation op = detail::placed(verb::pwritev, fd, buffers, offset);
  return perform_throwing(op, "pwritev");
}

std::size_t pwritev(int fd, std::span<const iovec> buffers, off_t offset,
                    std::error_code& error) noexcept {
  if (detail::refused(offset < 0 || buffers.size() > IOV_MAX, error)) return 0;
  operation op = detail::placed(verb::pwritev, fd, buffers, offset);
  return perform_quietly(op, "pwritev", error);
}

void fsync(int fd) {
  operation op = detail::synchronisation(fd, 0);
  perform_throwing(op, "fsync");
}

void fsync(int fd, std::error_code& error) noexcept {
  operation op = detail::synchronisation(fd, 0);
  perform_quietly(op, "fsync", error);
}

void fdatasync(int fd) {
  operation op = detail::synchronisation(fd, operation::data_only);
  perform_throwing(op, "fdatasync");
}

void fdatasync(int fd, std::error_code& error) noexcept {
  operation op = detail::synchronisation(fd, operation::data_only);
  perform_quietly(op, "fdatasync", error);
}

void fallocate(int fd, int mode, off_t offset, off_t size) {
  operation op = detail::allocation(fd, mode, offset, size);
  perform_throwing(op, "fallocate");
}

void fallocate(int fd, int mode, off_t offset, off_t size, std::error_code& error) noexcept {
  operation op = detail::allocation(fd, mode, offset, size);
  perform_quietly(op, "fallocate", error);
}

void ftruncate(int fd, off_t size) {
  operation op = detail::truncation(fd, size);
  perform_throwing(op, "ftruncate");
}

void ftruncate(int fd, off_t size, std::error_code& error) noexcept {
  operation op = detail::truncation(fd, size);
  perform_quietly(op, "ftruncate", error);
}

int openat(int directory, const char* path, int flags, mode_t mode) {
  operation op = detail::on_path(verb::openat, directory, path, flags | O_CLOEXEC, mode);
  return static_cast<int>(perform_on_path(op, "openat"));
}

int openat(int directory, const char* path, int flags, mode_t mode,
           std::error_code& error) noexcept {
  operation op = detail::on_path(verb::openat, directory, path, flags | O_CLOEXEC, mode);
  const auto result = static_cast<int>(perform_on_path_quietly(op, "openat", error));
  return error ? -1 : result;
}

void statx(int directory, const char* path, int flags, unsigned mask, struct ::statx& status) {
  operation op = detail::inquiry(directory, path, flags, mask, status);
  perform_on_path(op, "statx");
}

void statx(int directory, const char* path, int flags, unsigned mask, struct ::statx& status,
           std::error_code& error) noexcept {
  operation op = detail::inquiry(directory, path, flags, mask, status);
  perform_on_path_quietly(op, "statx", error);
}

void renameat(int directory, const char* path, int new_directory, const char* new_path,
              unsigned flags) {
  detail::here().deliver();
  detail::renaming wanted(directory, path, new_directory, new_path, flags);
  detail::settled_on_path(detail::perform(wanted), wanted.op, "renameat");
}

void renameat(int directory, const char* path, int new_directory, const char* new_path,
              unsigned flags, std::error_code& error) noexcept {
  detail::renaming wanted(directory, path, new_directory, new_path, flags);
  detail::quietly(error, [&] { return detail::perform(wanted); });
}

void unlinkat(int directory, const char* path, int flags) {
  operation op = detail::on_path(verb::unlinkat, directory, path, flags);
  perform_on_path(op, "unlinkat");
}

void unlinkat(int directory, const char* path, int flags, std::error_code& error) noexcept {
  operation op = detail::on_path(verb::unlinkat, directory, path, flags);
  perform_on_path_quietly(op, "unlinkat", error);
}

void mkdirat(int directory, const char* path, mode_t mode) {
  operation op = detail::on_path(verb::mkdirat, directory, path, 0, mode);
  perform_on_path(op, "mkdirat");
}

void mkdirat(int directory, const char* path, mode_t mode, std::error_code& error) noexcept {
  operation op = detail::on_path(verb::mkdirat, directory, path, 0, mode);
  perform_on_path_quietly(op, "mkdirat", error);
}

}  // namespace io

}}  // namespace motet::MOTET_ABI
