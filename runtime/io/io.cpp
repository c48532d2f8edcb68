// SPDX-License-Identifier: MIT
// See io.hpp. Each call makes an operation in its own frame and performs it.
#include "io/io.hpp"

#include <limits.h>
#include <poll.h>

#include <cerrno>
#include <motet/base/errors.hpp>
#include <motet/io/io.hpp>
#include <stdexcept>
#include <string>

#include "base/system_calls.hpp"
#include "base/verb_table.hpp"
#include "cancellation/pending_throw.hpp"
#include "core/thread_state.hpp"
#include "io/net/socket_calls.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace detail {

namespace {

[[gnu::noinline]] bool refuses_now(thread_state& thread) noexcept {
  end_passed_limits(thread);
  if (!thread.must_throw()) return false;
  if (thread.may_switch())
    thread.snooze();  // a loop that ignores its errors must not starve the other fibers
  return true;
}

[[gnu::always_inline]] inline bool refuses(thread_state& thread) noexcept {
  const bool may_refuse = limits_may_have_passed(thread) || thread.running().interrupts != 0;
  return may_refuse && refuses_now(thread);
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

namespace {

[[noreturn, gnu::noinline]] void refuse(const io_call& call) {
  const std::string name(call.name);
  switch (call.reason) {
    case refusal::too_many_buffers:
      throw std::invalid_argument(name + ": more than IOV_MAX buffers were given");
    case refusal::waits_for_all:
      throw std::invalid_argument(name + ": MSG_WAITALL could not be interrupted without a loss");
    default:
      throw_errno(EINVAL, call.name, call.op.fd);
  }
}

}  // namespace

std::size_t perform(io_call&& call) {
  if (call.reason != refusal::none) [[unlikely]]
    refuse(call);
  thread_state& thread = here();
  thread.deliver_before_switch();  // an operation that does not wait counts itself
  return check_result(perform_now(thread, call.op, call.name), call.name, call.op.fd);
}

std::size_t perform(io_call&& call, std::error_code& error) noexcept {
  if (call.reason != refusal::none) {
    error = std::make_error_code(std::errc::invalid_argument);
    return 0;
  }
  return quietly(error, [&] { return perform_now(call.op, call.name); });
}

namespace {

io_call reading(int fd, std::span<std::byte> buffer) {
  return {transfer(verb::read, fd, buffer), "read"};
}

io_call writing(int fd, std::span<const std::byte> buffer) {
  return {transfer(verb::write, fd, buffer), "write"};
}

io_call vectored(verb kind, const char* name, int fd, std::span<const iovec> buffers) {
  io_call call{{}, name, buffers.size() > IOV_MAX ? refusal::too_many_buffers : refusal::none};
  call.op.kind = kind;
  call.op.fd = fd;
  call.op.vectors = buffers.data();
  call.op.length = static_cast<std::uint32_t>(buffers.size());
  return call;
}

/// With MSG_WAITALL an interruption would lose the bytes that have been received already.
refusal refusal_of(int flags) noexcept {
  return (flags & MSG_WAITALL) != 0 ? refusal::waits_for_all : refusal::none;
}

io_call receiving(int fd, std::span<std::byte> buffer, int flags) {
  return {transfer(verb::recv, fd, buffer, flags), "recv", refusal_of(flags)};
}

io_call sending(int fd, std::span<const std::byte> buffer, int flags) {
  return {transfer(verb::send, fd, buffer, flags | MSG_NOSIGNAL), "send"};
}

operation messaging(verb kind, int fd, const msghdr& message, int flags) {
  operation op;
  op.kind = kind;
  op.fd = fd;
  op.flags = flags;
  op.message = const_cast<msghdr*>(&message);
  return op;
}

io_call sending_message(int fd, const msghdr& message, int flags) {
  return {messaging(verb::sendmsg, fd, message, flags | MSG_NOSIGNAL), "sendmsg"};
}

/// A packet socket refuses MSG_CMSG_CLOEXEC, which is of no use there. Source: packet(7).
std::int32_t receive_message(int fd, msghdr& message, int flags) {
  operation op = messaging(verb::recvmsg, fd, message, flags | MSG_CMSG_CLOEXEC);
  const std::int32_t result = perform_now(op, "recvmsg");
  if (result != -EINVAL || (flags & MSG_CMSG_CLOEXEC) != 0) return result;
  operation plain = messaging(verb::recvmsg, fd, message, flags);
  return perform_now(plain, "recvmsg");
}

io_call accepting(int fd, sockaddr* address, socklen_t* length) {
  operation op;
  op.kind = verb::accept;
  op.fd = fd;
  op.flags = SOCK_CLOEXEC;
  op.address = address;
  op.address_length = address == nullptr ? nullptr : length;
  return {op, "accept"};
}

io_call connecting(int fd, const sockaddr* address, socklen_t length) {
  operation op;
  op.kind = verb::connect;
  op.fd = fd;
  op.address = const_cast<sockaddr*>(address);
  op.length = length;
  return {op, "connect"};
}

io_call waiting(int fd, short events) {
  operation op;
  op.kind = verb::wait_fd;
  op.fd = fd;
  op.flags = events;
  return {op, "wait_fd"};
}

}  // namespace

}  // namespace detail

namespace io {

using detail::perform;

std::size_t read(int fd, std::span<std::byte> buffer) {
  return perform(detail::reading(fd, buffer));
}
std::size_t read(int fd, std::span<std::byte> buffer, std::error_code& error) noexcept {
  return perform(detail::reading(fd, buffer), error);
}

std::size_t write(int fd, std::span<const std::byte> buffer) {
  return perform(detail::writing(fd, buffer));
}
std::size_t write(int fd, std::span<const std::byte> buffer, std::error_code& error) noexcept {
  return perform(detail::writing(fd, buffer), error);
}

std::size_t readv(int fd, std::span<const iovec> buffers) {
  return perform(detail::vectored(verb::readv, "readv", fd, buffers));
}

std::size_t writev(int fd, std::span<const iovec> buffers) {
  return perform(detail::vectored(verb::writev, "writev", fd, buffers));
}

std::size_t recv(int fd, std::span<std::byte> buffer, int flags) {
  return perform(detail::receiving(fd, buffer, flags));
}
std::size_t recv(int fd, std::span<std::byte> buffer, int flags, std::error_code& error) noexcept {
  return perform(detail::receiving(fd, buffer, flags), error);
}

std::size_t recvmsg(int fd, msghdr& message, int flags) {
  const detail::refusal reason = detail::refusal_of(flags);
  if (reason != detail::refusal::none) detail::refuse({{}, "recvmsg", reason});
  detail::here().deliver();
  return detail::check_result(detail::receive_message(fd, message, flags), "recvmsg", fd);
}
std::size_t recvmsg(int fd, msghdr& message, int flags, std::error_code& error) noexcept {
  if (detail::refusal_of(flags) != detail::refusal::none) {
    error = std::make_error_code(std::errc::invalid_argument);
    return 0;
  }
  return detail::quietly(error, [&] { return detail::receive_message(fd, message, flags); });
}

std::size_t send(int fd, std::span<const std::byte> buffer, int flags) {
  return perform(detail::sending(fd, buffer, flags));
}
std::size_t send(int fd, std::span<const std::byte> buffer, int flags,
                 std::error_code& error) noexcept {
  return perform(detail::sending(fd, buffer, flags), error);
}

std::size_t sendmsg(int fd, const msghdr& message, int flags) {
  return perform(detail::sending_message(fd, message, flags));
}
std::size_t sendmsg(int fd, const msghdr& message, int flags, std::error_code& error) noexcept {
  return perform(detail::sending_message(fd, message, flags), error);
}

int accept(int fd, sockaddr* address, socklen_t* length) {
  return static_cast<int>(perform(detail::accepting(fd, address, length)));
}
int accept(int fd, sockaddr* address, socklen_t* length, std::error_code& error) noexcept {
  const auto result = static_cast<int>(perform(detail::accepting(fd, address, length), error));
  return error ? -1 : result;
}

void connect(int fd, const sockaddr* address, socklen_t length) {
  perform(detail::connecting(fd, address, length));
}
void connect(int fd, const sockaddr* address, socklen_t length, std::error_code& error) noexcept {
  perform(detail::connecting(fd, address, length), error);
}

short wait_fd(int fd, short events) {
  constexpr short event_mask = POLLIN | POLLOUT | POLLPRI | POLLRDHUP;
  if (events == 0 || (events & ~event_mask) != 0) {
    throw std::invalid_argument(
        "wait_fd: the mask must be of POLLIN, POLLOUT, POLLPRI and POLLRDHUP");
  }
  return static_cast<short>(perform(detail::waiting(fd, events)));
}

void shutdown(int fd, int direction) {
  if (detail::sockets::shutdown(fd, direction) != 0) detail::throw_errno(errno, "shutdown", fd);
}

void close(int fd) {
  if (fd < 0) detail::throw_errno(EBADF, "close", fd);
  detail::thread_state* thread = detail::self();
  if (thread != nullptr && !thread->calls.end_all_on(fd)) detail::throw_errno(EBADF, "close", fd);
  if (detail::sys::close(fd) != 0 && errno != EINTR) detail::throw_errno(errno, "close", fd);
}

}  // namespace io

}}  // namespace motet::MOTET_ABI
