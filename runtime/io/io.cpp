// SPDX-License-Identifier: MIT
// See io.hpp. Each call makes an operation in its own frame and performs it.
#include "io/io.hpp"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <motet/base/errors.hpp>
#include <motet/io/io.hpp>
#include <stdexcept>
#include <string>

#include "base/verb_table.hpp"
#include "cancellation/pending_throw.hpp"
#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace detail {

namespace {

[[gnu::always_inline]] inline bool refuses(thread_state& thread) noexcept {
  end_passed_limits(thread);
  if (!thread.must_throw()) return false;
  if (thread.may_switch())
    thread.snooze();  // a loop that ignores its errors must not starve the other fibers
  return true;
}

}  // namespace

std::int32_t perform_now(operation& op, const char* call) {
  return perform_now(here(), op, call);
}

std::int32_t perform_now(thread_state& thread, operation& op, const char* call) noexcept {
  if (op.fd < 0 && !has_path(op)) return -EBADF;
  if (refuses(thread)) return -ECANCELED;
  return thread.calls.perform(op, call);
}

bool refused_by_pending() {
  thread_state& thread = here();
  thread.yield_after_budget();
  return refuses(thread);
}

void deliver_passed_limits() {
  thread_state& thread = here();
  end_passed_limits(thread);
  thread.deliver();
}

std::size_t check_result(std::int32_t result, const char* call, int fd) {
  if (result >= 0) return static_cast<std::size_t>(result);
  if (result == -ECANCELED) {
    here().deliver();
    here().check_may_wait();
  }
  throw_errno(-result, call, fd);
}

std::size_t perform_throwing(operation& op, const char* call) {
  thread_state& thread = here();
  thread.deliver_before_switch();  // an operation that does not wait counts itself
  return check_result(perform_now(thread, op, call), call, op.fd);
}

std::size_t perform_ec(operation& op, const char* call, std::error_code& error) noexcept {
  return quietly(error, [&] { return perform_now(op, call); });
}

namespace {

operation messaging(verb kind, int fd, const msghdr& message, int flags) {
  operation op;
  op.kind = kind;
  op.fd = fd;
  op.flags = flags;
  op.message = const_cast<msghdr*>(&message);
  return op;
}

operation vectored(verb kind, int fd, std::span<const iovec> buffers) {
  if (buffers.size() > IOV_MAX) throw std::invalid_argument("more than IOV_MAX buffers were given");
  operation op;
  op.kind = kind;
  op.fd = fd;
  op.vectors = buffers.data();
  op.length = static_cast<std::uint32_t>(buffers.size());
  return op;
}

[[noreturn, gnu::noinline]] void refuse_to_wait_for_all(const char* call) {
  throw std::invalid_argument(std::string(call) +
                              ": MSG_WAITALL could not be interrupted without a loss");
}

/// A packet socket refuses MSG_CMSG_CLOEXEC, which is of no use there. Source: packet(7).
std::int32_t receive_message(int fd, msghdr& message, int flags) {
  operation op = messaging(verb::recvmsg, fd, message, flags | MSG_CMSG_CLOEXEC);
  const std::int32_t result = perform_now(op, "recvmsg");
  if (result != -EINVAL || (flags & MSG_CMSG_CLOEXEC) != 0) return result;
  operation plain = messaging(verb::recvmsg, fd, message, flags);
  return perform_now(plain, "recvmsg");
}

/// Half of what was asked for would be lost with an interruption.
void check_interruptible(int flags, const char* call) {
  if ((flags & MSG_WAITALL) != 0) [[unlikely]]
    refuse_to_wait_for_all(call);
}

/// Returns: `bad`, with the error set.
bool refused(bool bad, std::error_code& error) noexcept {
  if (bad) error = std::make_error_code(std::errc::invalid_argument);
  return bad;
}

operation acceptance(int fd, sockaddr* address, socklen_t* length) {
  operation op;
  op.kind = verb::accept;
  op.fd = fd;
  op.flags = SOCK_CLOEXEC;
  op.address = address;
  op.address_length = address == nullptr ? nullptr : length;
  return op;
}

operation connection(int fd, const sockaddr* address, socklen_t length) {
  operation op;
  op.kind = verb::connect;
  op.fd = fd;
  op.address = const_cast<sockaddr*>(address);
  op.length = length;
  return op;
}

}  // namespace

}  // namespace detail

namespace io {

using detail::perform_ec;
using detail::perform_throwing;

std::size_t read(int fd, std::span<std::byte> buffer) {
  operation op = detail::transfer(verb::read, fd, buffer);
  return perform_throwing(op, "read");
}

std::size_t read(int fd, std::span<std::byte> buffer, std::error_code& error) noexcept {
  operation op = detail::transfer(verb::read, fd, buffer);
  return perform_ec(op, "read", error);
}

std::size_t write(int fd, std::span<const std::byte> buffer) {
  operation op = detail::transfer(verb::write, fd, buffer);
  return perform_throwing(op, "write");
}

std::size_t write(int fd, std::span<const std::byte> buffer, std::error_code& error) noexcept {
  operation op = detail::transfer(verb::write, fd, buffer);
  return perform_ec(op, "write", error);
}

std::size_t readv(int fd, std::span<const iovec> buffers) {
  operation op = detail::vectored(verb::readv, fd, buffers);
  return perform_throwing(op, "readv");
}

std::size_t writev(int fd, std::span<const iovec> buffers) {
  operation op = detail::vectored(verb::writev, fd, buffers);
  return perform_throwing(op, "writev");
}

std::size_t recv(int fd, std::span<std::byte> buffer, int flags) {
  detail::check_interruptible(flags, "recv");
  operation op = detail::transfer(verb::recv, fd, buffer, flags);
  return perform_throwing(op, "recv");
}

std::size_t recv(int fd, std::span<std::byte> buffer, int flags, std::error_code& error) noexcept {
  if (detail::refused((flags & MSG_WAITALL) != 0, error)) return 0;
  operation op = detail::transfer(verb::recv, fd, buffer, flags);
  return perform_ec(op, "recv", error);
}

std::size_t recvmsg(int fd, msghdr& message, int flags) {
  detail::check_interruptible(flags, "recvmsg");
  detail::here().deliver();
  return detail::check_result(detail::receive_message(fd, message, flags), "recvmsg", fd);
}

std::size_t recvmsg(int fd, msghdr& message, int flags, std::error_code& error) noexcept {
  if (detail::refused((flags & MSG_WAITALL) != 0, error)) return 0;
  return detail::quietly(error, [&] { return detail::receive_message(fd, message, flags); });
}

std::size_t send(int fd, std::span<const std::byte> buffer, int flags) {
  operation op = detail::transfer(verb::send, fd, buffer, flags | MSG_NOSIGNAL);
  return perform_throwing(op, "send");
}

std::size_t send(int fd, std::span<const std::byte> buffer, int flags,
                 std::error_code& error) noexcept {
  operation op = detail::transfer(verb::send, fd, buffer, flags | MSG_NOSIGNAL);
  return perform_ec(op, "send", error);
}

std::size_t sendmsg(int fd, const msghdr& message, int flags) {
  operation op = detail::messaging(verb::sendmsg, fd, message, flags | MSG_NOSIGNAL);
  return perform_throwing(op, "sendmsg");
}

std::size_t sendmsg(int fd, const msghdr& message, int flags, std::error_code& error) noexcept {
  operation op = detail::messaging(verb::sendmsg, fd, message, flags | MSG_NOSIGNAL);
  return perform_ec(op, "sendmsg", error);
}

int accept(int fd, sockaddr* address, socklen_t* length) {
  operation op = detail::acceptance(fd, address, length);
  return static_cast<int>(perform_throwing(op, "accept"));
}

int accept(int fd, sockaddr* address, socklen_t* length, std::error_code& error) noexcept {
  operation op = detail::acceptance(fd, address, length);
  const auto result = static_cast<int>(perform_ec(op, "accept", error));
  return error ? -1 : result;
}

void connect(int fd, const sockaddr* address, socklen_t length) {
  operation op = detail::connection(fd, address, length);
  perform_throwing(op, "connect");
}

void connect(int fd, const sockaddr* address, socklen_t length, std::error_code& error) noexcept {
  operation op = detail::connection(fd, address, length);
  perform_ec(op, "connect", error);
}

short wait_fd(int fd, short events) {
  constexpr short event_mask = POLLIN | POLLOUT | POLLPRI | POLLRDHUP;
  if (events == 0 || (events & ~event_mask) != 0) {
    throw std::invalid_argument(
        "wait_fd: the mask must be of POLLIN, POLLOUT, POLLPRI and POLLRDHUP");
  }
  operation op;
  op.kind = verb::wait_fd;
  op.fd = fd;
  op.flags = events;
  return static_cast<short>(perform_throwing(op, "wait_fd"));
}

void shutdown(int fd, int direction) {
  if (::shutdown(fd, direction) != 0) detail::throw_errno(errno, "shutdown", fd);
}

void close(int fd) {
  if (fd < 0) detail::throw_errno(EBADF, "close", fd);
  detail::thread_state* thread = detail::self();
  if (thread != nullptr && !thread->calls.end_all_on(fd)) detail::throw_errno(EBADF, "close", fd);
  if (::close(fd) != 0 && errno != EINTR) detail::throw_errno(errno, "close", fd);
}

}  // namespace io

}}  // namespace motet::MOTET_ABI
