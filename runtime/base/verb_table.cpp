// SPDX-License-Identifier: MIT
// See base/verb_table.hpp. The mode of a descriptor that is not ours is not ours to change, so
// each call has its own way not to block: MSG_DONTWAIT for sockets, RWF_NOWAIT for pipes and files,
// a look with poll(2) for the rest, and for connect(2) the shortest send timeout there is.
#include "base/verb_table.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/listens.hpp"
#include "base/ring_codes.hpp"
#include "base/sigpipe.hpp"
#include "base/system_calls.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

template <typename T>
std::int32_t result_or_errno(T result) noexcept {
  return result < 0 ? -errno : static_cast<std::int32_t>(result);
}

/// A signal interrupts poll(2) also when it does not wait. Source: poll(2), EINTR.
int poll_now(pollfd& look) noexcept {
  for (;;) {
    const int count = sys::poll(&look, 1, 0);
    if (count >= 0 || errno != EINTR) return count;
  }
}

bool ready(int fd, short events) noexcept {
  pollfd look{fd, events, 0};
  return poll_now(look) > 0;
}

/// What a verb reads or writes, as vectors, and where.
struct transfer {
  explicit transfer(operation& op) noexcept : single{op.buffer, op.length} {
    const verb_row& row = row_of(op.kind);
    if (row.carries == payload::vectors) {
      first = op.vectors;
      count = static_cast<int>(op.length);
    }
    if (row.access == file_access::offset) offset = static_cast<off_t>(op.offset);
  }
  iovec single;
  const iovec* first = &single;
  int count = 1;
  off_t offset = -1;  // the descriptor's position
};

std::int32_t call_read(operation& op, bool nowait) noexcept {
  const transfer destination(op);
  return result_or_errno(sys::preadv2(op.fd, destination.first, destination.count,
                                      destination.offset, nowait ? RWF_NOWAIT : 0));
}

std::int32_t call_write(operation& op, bool nowait) noexcept {
  const transfer source(op);
  return result_or_errno(sys::pwritev2(op.fd, source.first, source.count, source.offset,
                                       op.flags | (nowait ? RWF_NOWAIT : 0)));
}

int flags_of(const operation& op, bool nowait) noexcept {
  return op.flags | (nowait ? MSG_DONTWAIT : 0);
}

std::int32_t call_recv(operation& op, bool nowait) noexcept {
  return result_or_errno(sys::recv(op.fd, op.buffer, op.length, flags_of(op, nowait)));
}

std::int32_t call_send(operation& op, bool nowait) noexcept {
  return result_or_errno(sys::send(op.fd, op.buffer, op.length, flags_of(op, nowait)));
}

std::int32_t call_recvmsg(operation& op, bool nowait) noexcept {
  return result_or_errno(sys::recvmsg(op.fd, op.message, flags_of(op, nowait)));
}

std::int32_t call_sendmsg(operation& op, bool nowait) noexcept {
  return result_or_errno(sys::sendmsg(op.fd, op.message, flags_of(op, nowait)));
}

std::int32_t call_fsync(operation& op, bool) noexcept {
  return result_or_errno(op.flags == operation::data_only ? ::fdatasync(op.fd) : ::fsync(op.fd));
}

std::int32_t call_fallocate(operation& op, bool) noexcept {
  return result_or_errno(::fallocate(op.fd, static_cast<int>(op.length),
                                     static_cast<off_t>(op.offset), static_cast<off_t>(op.size)));
}

std::int32_t call_ftruncate(operation& op, bool) noexcept {
  return result_or_errno(::ftruncate(op.fd, static_cast<off_t>(op.offset)));
}

std::int32_t call_openat(operation& op, bool) noexcept {
  return result_or_errno(sys::openat(op.fd, op.path, op.flags, op.length));
}

std::int32_t call_statx(operation& op, bool) noexcept {
  return result_or_errno(::statx(op.fd, op.path, op.flags, op.length, op.status));
}

std::int32_t call_renameat(operation& op, bool) noexcept {
  return result_or_errno(::renameat2(op.fd, op.path, static_cast<int>(op.length), op.new_path,
                                     static_cast<unsigned>(op.flags)));
}

std::int32_t call_unlinkat(operation& op, bool) noexcept {
  return result_or_errno(::unlinkat(op.fd, op.path, op.flags));
}

std::int32_t call_mkdirat(operation& op, bool) noexcept {
  return result_or_errno(::mkdirat(op.fd, op.path, op.length));
}

std::int32_t call_getdents(operation& op, bool) noexcept {
  return result_or_errno(::getdents64(op.fd, op.buffer, op.length));
}

std::int32_t call_splice(operation& op, bool) noexcept {
  const sigpipe_guard guard;
  return result_or_errno(
      sys::splice(op.fd, nullptr, op.target, nullptr, op.length, static_cast<unsigned>(op.flags)));
}

/// A socket that does not listen is never ready, so the call must refuse it.
std::int32_t call_accept(operation& op, bool nowait) noexcept {
  if (nowait && !op.nonblocking && !ready(op.fd, POLLIN) && listens(op.fd)) return -EAGAIN;
  return result_or_errno(sys::accept4(op.fd, op.address, op.address_length, op.flags));
}

constexpr std::uint8_t stage_connecting = 1;

/// Returns: `result`; but for EINTR EINPROGRESS, since an interrupted connection attempt goes on.
/// Source: connect(2), EINTR.
std::int32_t goes_on(std::int32_t result) noexcept {
  return result == -EINTR ? -EINPROGRESS : result;
}

/// Starts to connect. A blocking socket waits for the peer, but no longer than its send timeout;
/// the shortest timeout is one tick of the kernel's clock. Source: socket(7), SO_SNDTIMEO.
std::int32_t start_connecting(const operation& op) noexcept {
  const int mode = sys::fcntl(op.fd, F_GETFL);
  if (mode < 0) return -errno;
  if ((mode & O_NONBLOCK) != 0) {
    return goes_on(result_or_errno(sys::connect(op.fd, op.address, op.length)));
  }
  timeval old_limit{};
  socklen_t size = sizeof old_limit;
  if (::getsockopt(op.fd, SOL_SOCKET, SO_SNDTIMEO, &old_limit, &size) != 0) return -errno;
  const timeval shortest{0, 1};
  ::setsockopt(op.fd, SOL_SOCKET, SO_SNDTIMEO, &shortest, sizeof shortest);
  const std::int32_t result = goes_on(result_or_errno(sys::connect(op.fd, op.address, op.length)));
  ::setsockopt(op.fd, SOL_SOCKET, SO_SNDTIMEO, &old_limit, sizeof old_limit);
  return result;
}

std::int32_t call_connect(operation& op, bool) noexcept {
  if (op.stage != stage_connecting) {
    const std::int32_t result = start_connecting(op);
    if (result != -EINPROGRESS) return result;
    op.stage = stage_connecting;
    return -EAGAIN;
  }
  if (!ready(op.fd, POLLOUT)) return -EAGAIN;
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(op.fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return -errno;
  return -error;
}

/// A cancelled connect goes on in the kernel, which would answer EALREADY to the next one.
/// Source: connect(2), AF_UNSPEC.
void undo_connect(int fd) noexcept {
  const sockaddr no_address{AF_UNSPEC, {}};
  (void)sys::connect(fd, &no_address, sizeof no_address);
}

std::int32_t look_at(operation& op, bool) noexcept {
  pollfd look{op.fd, static_cast<short>(op.flags), 0};
  const int count = poll_now(look);
  if (count < 0) return -errno;
  if (count == 0) return -EAGAIN;
  return (look.revents & POLLNVAL) != 0 ? -EBADF : look.revents;
}

constexpr verb_row reading(verb kind, names text, std::uint8_t ring_code, file_access access,
                           payload carries) {
  return {kind, text, &call_read, nullptr, POLLIN, ring_code, access, carries, true, false, false};
}

/// A pipe, which may raise SIGPIPE, has no offset.
constexpr verb_row writing(verb kind, names text, std::uint8_t ring_code, file_access access,
                           payload carries) {
  const bool on_pipes = access == file_access::position;
  return {kind,   text,    &call_write, nullptr, POLLOUT, ring_code,
          access, carries, false,       false,   on_pipes};
}

/// A verb for sockets alone, which takes message flags.
constexpr verb_row messaging(verb kind, names text, std::uint8_t ring_code, short readiness,
                             payload carries, std::int32_t (*call)(operation&, bool) noexcept) {
  const bool fills = readiness == POLLIN;
  return {kind,    text,  call, nullptr, readiness, ring_code, file_access::none,
          carries, fills, true, false};
}

/// A verb on a whole file, or on a name.
constexpr verb_row on_file(verb kind, names text, std::uint8_t ring_code, payload carries,
                           std::int32_t (*call)(operation&, bool) noexcept) {
  const bool fills = carries == payload::path_and_status || carries == payload::buffer;
  return {kind,    text,  call,  nullptr, POLLOUT, ring_code, file_access::whole,
          carries, fills, false, false};
}

/// A verb about connections, or about readiness.
constexpr verb_row other(verb kind, names text, std::uint8_t ring_code, short readiness,
                         payload carries, std::int32_t (*call)(operation&, bool) noexcept,
                         void (*undo)(int) noexcept = nullptr) {
  const bool fills = carries == payload::peer;
  return {kind,    text,  call,  undo, readiness, ring_code, file_access::none,
          carries, fills, false, false};
}

constexpr std::array<verb_row, verbs> rows{
    reading(verb::read, "read", IORING_OP_READ, file_access::position, payload::buffer),
    writing(verb::write, "write", IORING_OP_WRITE, file_access::position, payload::buffer),
    reading(verb::readv, {"readv", "read"}, IORING_OP_READV, file_access::position,
            payload::vectors),
    writing(verb::writev, {"writev", "write"}, IORING_OP_WRITEV, file_access::position,
            payload::vectors),
    reading(verb::pread, "pread", IORING_OP_READ, file_access::offset, payload::buffer),
    writing(verb::pwrite, "pwrite", IORING_OP_WRITE, file_access::offset, payload::buffer),
    reading(verb::preadv, {"preadv", "pread"}, IORING_OP_READV, file_access::offset,
            payload::vectors),
    writing(verb::pwritev, {"pwritev", "pwrite"}, IORING_OP_WRITEV, file_access::offset,
            payload::vectors),
    on_file(verb::fsync, "fsync", IORING_OP_FSYNC, payload::nothing, &call_fsync),
    on_file(verb::fallocate, "fallocate", IORING_OP_FALLOCATE, payload::size, &call_fallocate),
    on_file(verb::ftruncate, "ftruncate", ring_code_ftruncate, payload::nothing, &call_ftruncate),
    on_file(verb::openat, "openat", IORING_OP_OPENAT, payload::path, &call_openat),
    on_file(verb::statx, "statx", IORING_OP_STATX, payload::path_and_status, &call_statx),
    on_file(verb::renameat, "renameat", IORING_OP_RENAMEAT, payload::two_paths, &call_renameat),
    on_file(verb::unlinkat, "unlinkat", IORING_OP_UNLINKAT, payload::path, &call_unlinkat),
    on_file(verb::mkdirat, "mkdirat", IORING_OP_MKDIRAT, payload::path, &call_mkdirat),
    on_file(verb::getdents, {"getdents", "getdents64"}, ring_code_none, payload::buffer,
            &call_getdents),
    on_file(verb::splice, "splice", ring_code_none, payload::nothing, &call_splice),
    messaging(verb::recv, "recv", IORING_OP_RECV, POLLIN, payload::buffer, &call_recv),
    messaging(verb::send, "send", IORING_OP_SEND, POLLOUT, payload::buffer, &call_send),
    messaging(verb::recvmsg, "recvmsg", IORING_OP_RECVMSG, POLLIN, payload::message, &call_recvmsg),
    messaging(verb::sendmsg, "sendmsg", IORING_OP_SENDMSG, POLLOUT, payload::message,
              &call_sendmsg),
    other(verb::accept, "accept", IORING_OP_ACCEPT, POLLIN, payload::peer, &call_accept),
    other(verb::connect, "connect", IORING_OP_CONNECT, POLLOUT, payload::address, &call_connect,
          &undo_connect),
    other(verb::wait_fd, "wait_fd", IORING_OP_POLL_ADD, 0, payload::nothing, &look_at),
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < verbs; ++i) {
    if (static_cast<std::size_t>(rows[i].kind) != i) return false;
  }
  return true;
}
static_assert(in_order(), "a row of the table is not at the place of its verb");

}  // namespace

constinit const std::array<verb_row, verbs> verb_table = rows;

}}}  // namespace motet::MOTET_ABI::detail
