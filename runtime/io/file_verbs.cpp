// SPDX-License-Identifier: MIT
// See motet/io/file_verbs.hpp: the calls on files.
#include <limits.h>

#include <motet/io/file_verbs.hpp>

#include "io/io.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace detail { namespace {

operation on_file(verb kind, int fd) {
  operation op;
  op.kind = kind;
  op.fd = fd;
  return op;
}

/// The kernel takes an offset of -1 for the position of the descriptor.
refusal refusal_of(off_t number) noexcept {
  return number < 0 ? refusal::invalid : refusal::none;
}

io_call positioned(verb kind, const char* name, int fd, std::span<const std::byte> buffer,
                   off_t offset) {
  operation op = transfer(kind, fd, buffer);
  op.offset = static_cast<std::uint64_t>(offset);
  return {op, name, refusal_of(offset)};
}

io_call positioned(verb kind, const char* name, int fd, std::span<const iovec> buffers,
                   off_t offset) {
  operation op = on_file(kind, fd);
  op.vectors = buffers.data();
  op.length = static_cast<std::uint32_t>(buffers.size());
  op.offset = static_cast<std::uint64_t>(offset);
  return {op, name, buffers.size() > IOV_MAX ? refusal::too_many_buffers : refusal_of(offset)};
}

io_call synchronisation(const char* name, int fd, int flags) {
  operation op = on_file(verb::fsync, fd);
  op.flags = flags;
  return {op, name};
}

io_call allocation(int fd, int mode, off_t offset, off_t size) {
  operation op = on_file(verb::fallocate, fd);
  op.length = static_cast<std::uint32_t>(mode);
  op.offset = static_cast<std::uint64_t>(offset);
  op.size = static_cast<std::uint64_t>(size);
  return {op, "fallocate"};
}

io_call truncation(int fd, off_t size) {
  operation op = on_file(verb::ftruncate, fd);
  op.offset = static_cast<std::uint64_t>(size);
  return {op, "ftruncate", refusal_of(size)};
}

}}  // namespace detail

namespace io {

using detail::perform;
using detail::positioned;

std::size_t pread(int fd, std::span<std::byte> buffer, off_t offset) {
  return perform(positioned(verb::pread, "pread", fd, buffer, offset));
}
std::size_t pread(int fd, std::span<std::byte> buffer, off_t offset,
                  std::error_code& error) noexcept {
  return perform(positioned(verb::pread, "pread", fd, buffer, offset), error);
}

std::size_t pwrite(int fd, std::span<const std::byte> buffer, off_t offset) {
  return perform(positioned(verb::pwrite, "pwrite", fd, buffer, offset));
}
std::size_t pwrite(int fd, std::span<const std::byte> buffer, off_t offset,
                   std::error_code& error) noexcept {
  return perform(positioned(verb::pwrite, "pwrite", fd, buffer, offset), error);
}

std::size_t preadv(int fd, std::span<const iovec> buffers, off_t offset) {
  return perform(positioned(verb::preadv, "preadv", fd, buffers, offset));
}
std::size_t preadv(int fd, std::span<const iovec> buffers, off_t offset,
                   std::error_code& error) noexcept {
  return perform(positioned(verb::preadv, "preadv", fd, buffers, offset), error);
}

std::size_t pwritev(int fd, std::span<const iovec> buffers, off_t offset) {
  return perform(positioned(verb::pwritev, "pwritev", fd, buffers, offset));
}
std::size_t pwritev(int fd, std::span<const iovec> buffers, off_t offset,
                    std::error_code& error) noexcept {
  return perform(positioned(verb::pwritev, "pwritev", fd, buffers, offset), error);
}

void fsync(int fd) {
  perform(detail::synchronisation("fsync", fd, 0));
}
void fsync(int fd, std::error_code& error) noexcept {
  perform(detail::synchronisation("fsync", fd, 0), error);
}

void fdatasync(int fd) {
  perform(detail::synchronisation("fdatasync", fd, operation::data_only));
}
void fdatasync(int fd, std::error_code& error) noexcept {
  perform(detail::synchronisation("fdatasync", fd, operation::data_only), error);
}

void fallocate(int fd, int mode, off_t offset, off_t size) {
  perform(detail::allocation(fd, mode, offset, size));
}
void fallocate(int fd, int mode, off_t offset, off_t size, std::error_code& error) noexcept {
  perform(detail::allocation(fd, mode, offset, size), error);
}

void ftruncate(int fd, off_t size) {
  perform(detail::truncation(fd, size));
}
void ftruncate(int fd, off_t size, std::error_code& error) noexcept {
  perform(detail::truncation(fd, size), error);
}

}  // namespace io

}}  // namespace motet::MOTET_ABI
