// SPDX-License-Identifier: MIT
// See motet/io/file_verbs.hpp: the calls on files.
#include <limits.h>

#include <algorithm>
#include <cerrno>
#include <motet/base/errors.hpp>
#include <motet/io/file_verbs.hpp>
#include <stdexcept>

#include "core/thread_state.hpp"
#include "io/io.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace detail { namespace {

operation on_file(verb kind, int fd) {
  operation op;
  op.kind = kind;
  op.fd = fd;
  return op;
}

operation operation_at(verb kind, int fd, std::span<const std::byte> buffer, off_t offset) {
  operation op = transfer(kind, fd, buffer);
  op.offset = static_cast<std::uint64_t>(offset);
  return op;
}

operation operation_at(verb kind, int fd, std::span<const iovec> buffers, off_t offset) {
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

/// The kernel takes -1 for the position of the descriptor.
void check_offset(off_t offset, const char* call, int fd) {
  if (offset < 0) throw_errno(EINVAL, call, fd);
}

void check_count(std::span<const iovec> buffers) {
  if (buffers.size() > IOV_MAX) throw std::invalid_argument("more than IOV_MAX buffers were given");
}

/// Returns: `bad`, with the error set.
bool refused(bool bad, std::error_code& error) noexcept {
  if (bad) error = std::make_error_code(std::errc::invalid_argument);
  return bad;
}

}}  // namespace detail

namespace io {

using detail::perform_ec;
using detail::perform_throwing;

std::size_t pread(int fd, std::span<std::byte> buffer, off_t offset) {
  detail::check_offset(offset, "pread", fd);
  operation op = detail::operation_at(verb::pread, fd, buffer, offset);
  return perform_throwing(op, "pread");
}

std::size_t pread(int fd, std::span<std::byte> buffer, off_t offset,
                  std::error_code& error) noexcept {
  if (detail::refused(offset < 0, error)) return 0;
  operation op = detail::operation_at(verb::pread, fd, buffer, offset);
  return perform_ec(op, "pread", error);
}

std::size_t pwrite(int fd, std::span<const std::byte> buffer, off_t offset) {
  detail::check_offset(offset, "pwrite", fd);
  operation op = detail::operation_at(verb::pwrite, fd, buffer, offset);
  return perform_throwing(op, "pwrite");
}

std::size_t pwrite(int fd, std::span<const std::byte> buffer, off_t offset,
                   std::error_code& error) noexcept {
  if (detail::refused(offset < 0, error)) return 0;
  operation op = detail::operation_at(verb::pwrite, fd, buffer, offset);
  return perform_ec(op, "pwrite", error);
}

std::size_t preadv(int fd, std::span<const iovec> buffers, off_t offset) {
  detail::check_count(buffers);
  detail::check_offset(offset, "preadv", fd);
  operation op = detail::operation_at(verb::preadv, fd, buffers, offset);
  return perform_throwing(op, "preadv");
}

std::size_t preadv(int fd, std::span<const iovec> buffers, off_t offset,
                   std::error_code& error) noexcept {
  if (detail::refused(offset < 0 || buffers.size() > IOV_MAX, error)) return 0;
  operation op = detail::operation_at(verb::preadv, fd, buffers, offset);
  return perform_ec(op, "preadv", error);
}

std::size_t pwritev(int fd, std::span<const iovec> buffers, off_t offset) {
  detail::check_count(buffers);
  detail::check_offset(offset, "pwritev", fd);
  operation op = detail::operation_at(verb::pwritev, fd, buffers, offset);
  return perform_throwing(op, "pwritev");
}

std::size_t pwritev(int fd, std::span<const iovec> buffers, off_t offset,
                    std::error_code& error) noexcept {
  if (detail::refused(offset < 0 || buffers.size() > IOV_MAX, error)) return 0;
  operation op = detail::operation_at(verb::pwritev, fd, buffers, offset);
  return perform_ec(op, "pwritev", error);
}

void fsync(int fd) {
  operation op = detail::synchronisation(fd, 0);
  perform_throwing(op, "fsync");
}

void fsync(int fd, std::error_code& error) noexcept {
  operation op = detail::synchronisation(fd, 0);
  perform_ec(op, "fsync", error);
}

void fdatasync(int fd) {
  operation op = detail::synchronisation(fd, operation::data_only);
  perform_throwing(op, "fdatasync");
}

void fdatasync(int fd, std::error_code& error) noexcept {
  operation op = detail::synchronisation(fd, operation::data_only);
  perform_ec(op, "fdatasync", error);
}

void fallocate(int fd, int mode, off_t offset, off_t size) {
  operation op = detail::allocation(fd, mode, offset, size);
  perform_throwing(op, "fallocate");
}

void fallocate(int fd, int mode, off_t offset, off_t size, std::error_code& error) noexcept {
  operation op = detail::allocation(fd, mode, offset, size);
  perform_ec(op, "fallocate", error);
}

void ftruncate(int fd, off_t size) {
  if (size < 0) detail::throw_errno(EINVAL, "ftruncate", fd);
  operation op = detail::truncation(fd, size);
  perform_throwing(op, "ftruncate");
}

void ftruncate(int fd, off_t size, std::error_code& error) noexcept {
  if (detail::refused(size < 0, error)) return;
  operation op = detail::truncation(fd, size);
  perform_ec(op, "ftruncate", error);
}

}  // namespace io

}}  // namespace motet::MOTET_ABI
