// SPDX-License-Identifier: MIT
// What a socket_stream keeps: its socket, and who uses which direction.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <motet/detail/io/socket_stream.hpp>
#include <motet/detail/io/stream_queue.hpp>
#include <motet/errors.hpp>
#include <stdexcept>

#include "heart/thread_state.hpp"
#include "io/io.hpp"
#include "io/net/socket.hpp"
#include "io/vectors.hpp"
#include "words/remote_closings.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// One direction of a connection.
struct direction {
  stream_queue queue;
  bool drained = false;  // the last read took all the data there was
};

/// Streams have numbers, because the numbers of descriptors are used again.
inline std::uint64_t next_stream_number() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

struct socket_stream::state {
  explicit state(fd connected) noexcept : socket(std::move(connected)) {}

  fd socket;
  const std::uint64_t number = next_stream_number();
  const thread_state* used_on = nullptr;
  bool travelled = false;  // the stream has been used on more than one thread
  bool is_let_go = false;  // the stream is closed, but a turn is kept
  direction in;
  direction out;

  /// The caller has the turn.
  operation prepare(verb kind, int flags) noexcept {
    const thread_state* here = self();
    travelled = travelled || (used_on != nullptr && used_on != here);
    used_on = here;
    operation op;
    op.kind = kind;
    op.fd = socket.get();
    op.flags = flags;
    op.stream = number;
    return op;
  }

  /// Receives or sends at most `size` bytes; the caller has the turn.
  std::int32_t move(verb kind, direction& way, const std::byte* buffer, std::size_t size) {
    if (way.queue.closed()) return -EBADF;  // meanwhile
    operation op = prepare(kind, kind == verb::send ? MSG_NOSIGNAL : 0);
    op.buffer = const_cast<std::byte*>(buffer);
    op.length = static_cast<std::uint32_t>(std::min(size, most_bytes));
    op.drained = way.drained;
    const std::int32_t result = perform_now(op, kind == verb::send ? "write on fd" : "read on fd");
    way.drained =
        kind == verb::recv && result > 0 && static_cast<std::uint32_t>(result) < op.length;
    return result;
  }

  std::int32_t read(std::span<std::byte> buffer) {
    const net::stream_turn turn(in.queue, "turn to read on fd", socket.get());
    if (turn.refusal() != 0) return turn.refusal();
    return move(verb::recv, in, buffer.data(), buffer.size());
  }

  std::int32_t write(std::span<const std::byte> buffer) {
    const net::stream_turn turn(out.queue, "turn to write on fd", socket.get());
    if (turn.refusal() != 0) return turn.refusal();
    return move(verb::send, out, buffer.data(), buffer.size());
  }

  std::int32_t write_all(std::span<const std::byte> buffer) {
    const net::stream_turn turn(out.queue, "turn to write on fd", socket.get());
    if (turn.refusal() != 0) return turn.refusal();
    while (!buffer.empty()) {
      const std::int32_t sent = move(verb::send, out, buffer.data(), buffer.size());
      if (sent < 0) return sent;
      buffer = buffer.subspan(static_cast<std::size_t>(sent));
    }
    return 0;
  }

  std::int32_t write_vectors(std::span<const iovec> buffers) {
    const net::stream_turn turn(out.queue, "turn to write on fd", socket.get());
    if (turn.refusal() != 0) return turn.refusal();
    return move_vectors(buffers, [&](std::span<const iovec> part) -> std::int32_t {
      if (out.queue.closed()) return -EBADF;  // meanwhile
      msghdr message{};
      message.msg_iov = const_cast<iovec*>(part.data());
      message.msg_iovlen = part.size();
      operation op = prepare(verb::sendmsg, MSG_NOSIGNAL);
      op.message = &message;
      return perform_now(op, "write on fd");
    });
  }

  std::int32_t send_message(msghdr& message) {
    const net::stream_turn turn(out.queue, "turn to write on fd", socket.get());
    if (turn.refusal() != 0) return turn.refusal();
    operation op = prepare(verb::sendmsg, MSG_NOSIGNAL);
    op.message = &message;
    return perform_now(op, "sendmsg on fd");
  }

  std::int32_t receive_message(msghdr& message) {
    const net::stream_turn turn(in.queue, "turn to read on fd", socket.get());
    if (turn.refusal() != 0) return turn.refusal();
    operation op = prepare(verb::recvmsg, MSG_CMSG_CLOEXEC);
    op.message = &message;
    return perform_now(op, "recvmsg on fd");
  }

  void check_threads() {
    if (in.queue.taken_elsewhere() || out.queue.taken_elsewhere()) {
      throw std::logic_error("a fiber of another thread reads or writes on the stream");
    }
  }

  /// The fibers that wait for their turns get bad_file_descriptor, and so do all that come later.
  void end_queues() noexcept {
    in.queue.close();
    out.queue.close();
  }

  /// The fibers in a call on the stream must have left it before the state is destroyed.
  void await_leave() noexcept {
    thread_state* thread = self();
    if (thread == nullptr) return;
    while (in.queue.in_use() || out.queue.in_use()) thread->snooze();
  }

  /// Destroys the state of a stream that is closed, or has it destroyed by whichever fiber keeps a
  /// turn last.
  static void let_go(owned<state> closed) noexcept {
    closed->await_leave();
    thread_state* thread = self();
    if (closed->kept() && thread != nullptr) thread->snooze();  // who can notice it does so now
    closed->is_let_go = closed->kept();
    if (closed->is_let_go) (void)closed.release();
  }
  static void pass(state* held, direction& way) noexcept {
    way.queue.pass();
    if (held->is_let_go && !held->kept()) delete held;
  }
  bool kept() noexcept { return in.queue.kept() || out.queue.kept(); }

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
