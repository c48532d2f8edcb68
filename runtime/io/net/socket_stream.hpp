// SPDX-License-Identifier: MIT
// What a socket_stream keeps: its socket, and who uses which direction.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <motet/base/errors.hpp>
#include <motet/net/socket_stream.hpp>

#include "base/remote_closings.hpp"
#include "core/thread_state.hpp"
#include "io/io.hpp"
#include "io/net/socket.hpp"
#include "io/stream_turns.hpp"
#include "io/vectors.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Streams have numbers, because the numbers of descriptors are used again.
inline std::uint64_t next_stream_number() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

struct socket_stream::state : stream_turns<socket_stream::state> {
  explicit state(fd descriptor) noexcept : socket(std::move(descriptor)) {}

  fd socket;
  const std::uint64_t number = next_stream_number();
  const thread_state* used_on = nullptr;
  bool travelled = false;     // the stream has been used on more than one thread
  bool expects_wait = false;  // the last read took all the data there was

  /// The caller has the turn.
  operation prepare(verb kind, int flags) noexcept {
    const thread_state* thread = self();
    travelled = travelled || (used_on != nullptr && used_on != thread);
    used_on = thread;
    operation op;
    op.kind = kind;
    op.fd = socket.get();
    op.flags = flags;
    op.stream = number;
    return op;
  }

  /// Receives or sends at most `size` bytes; the caller has the turn.
  std::int32_t move(verb kind, stream_queue& turn, const std::byte* buffer, std::size_t size) {
    if (turn.closed()) return -EBADF;  // meanwhile
    operation op = prepare(kind, kind == verb::send ? MSG_NOSIGNAL : 0);
    op.buffer = const_cast<std::byte*>(buffer);
    op.length = static_cast<std::uint32_t>(std::min(size, most_bytes));
    if (kind == verb::send) return perform_now(op, "write on fd");
    op.expects_wait = expects_wait;
    const std::int32_t result = perform_now(op, "read on fd");
    expects_wait = result > 0 && static_cast<std::uint32_t>(result) < op.length;
    return result;
  }

  std::int32_t read(std::span<std::byte> buffer) {
    if (buffer.empty()) return refused_by_pending() ? -ECANCELED : 0;  // it would wait for bytes
    const net::stream_turn turn(read_queue, "turn to read on fd", socket.get());
    if (turn.refusal() != 0) return turn.refusal();
    return move(verb::recv, read_queue, buffer.data(), buffer.size());
  }

  std::int32_t write(std::span<const std::byte> buffer) {
    const net::stream_turn turn(write_queue, "turn to write on fd", socket.get());
    if (turn.refusal() != 0) return turn.refusal();
    return move(verb::send, write_queue, buffer.data(), buffer.size());
  }

  std::int32_t write_all(std::span<const std::byte> buffer) {
    const net::stream_turn turn(write_queue, "turn to write on fd", socket.get());
    if (turn.refusal() != 0) return turn.refusal();
    if (buffer.empty() && refused_by_pending()) return -ECANCELED;
    while (!buffer.empty()) {
      const std::int32_t count = move(verb::send, write_queue, buffer.data(), buffer.size());
      if (count < 0) return count;
      buffer = buffer.subspan(static_cast<std::size_t>(count));
    }
    return 0;
  }

  std::int32_t write_vectors(std::span<const iovec> buffers) {
    const net::stream_turn turn(write_queue, "turn to write on fd", socket.get());
    if (turn.refusal() != 0) return turn.refusal();
    return move_vectors(buffers, [&](std::span<const iovec> part) -> std::int32_t {
      if (write_queue.closed()) return -EBADF;  // meanwhile
      msghdr message{};
      message.msg_iov = const_cast<iovec*>(part.data());
      message.msg_iovlen = part.size();
      operation op = prepare(verb::sendmsg, MSG_NOSIGNAL);
      op.message = &message;
      return perform_now(op, "write on fd");
    });
  }

  std::int32_t send_message(msghdr& message) {
    const net::stream_turn turn(write_queue, "turn to write on fd", socket.get());
    if (turn.refusal() != 0) return turn.refusal();
    operation op = prepare(verb::sendmsg, MSG_NOSIGNAL);
    op.message = &message;
    return perform_now(op, "sendmsg on fd");
  }

  std::int32_t receive_message(msghdr& message) {
    const net::stream_turn turn(read_queue, "turn to read on fd", socket.get());
    if (turn.refusal() != 0) return turn.refusal();
    operation op = prepare(verb::recvmsg, MSG_CMSG_CLOEXEC);
    op.message = &message;
    return perform_now(op, "recvmsg on fd");
  }

  /// Whether no other thread's backend may keep anything for the socket.
  bool only_here() const noexcept {
    return !travelled && (used_on == nullptr || used_on == self());
  }

  void close_socket() {
    if (only_here()) {
      socket.close();
      return;
    }
    if (thread_state* thread = self()) thread->calls.end_all_on(socket.get());
    const remote_closing guard;
    ::close(socket.release());
  }
};

}}}  // namespace motet::MOTET_ABI::detail
