// SPDX-License-Identifier: MIT
// What a socket_stream keeps: its socket, and who uses which direction.
#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <motet/base/errors.hpp>
#include <motet/net/socket_stream.hpp>

#include "base/remote_closings.hpp"
#include "base/system_calls.hpp"
#include "core/thread_state.hpp"
#include "io/io.hpp"
#include "io/stream_calls.hpp"

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

  int descriptor() const noexcept { return socket.get(); }

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
    sys::close(socket.release());
  }
};

template <bool Writes>
struct socket_stream::half : stream_half<half<Writes>, state, Writes> {
  using stream_half<half, state, Writes>::stream_half;
  static half of(void* stream) noexcept {
    return half(static_cast<socket_stream*>(stream)->state_.get());
  }
  int kernel_descriptor() const noexcept { return this->descriptor(); }

  /// Receives or sends, in the turn.
  std::int32_t move(std::span<const std::byte> bytes) {
    if (this->queue().closed()) return -EBADF;  // meanwhile
    state& data = *this->state();
    operation op = data.prepare(Writes ? verb::send : verb::recv, Writes ? MSG_NOSIGNAL : 0);
    op.buffer = const_cast<std::byte*>(bytes.data());
    op.length = static_cast<std::uint32_t>(std::min(bytes.size(), most_bytes));
    if (Writes) return perform_now(op, "write on fd");
    op.expects_wait = data.expects_wait;
    const std::int32_t result = perform_now(op, "read on fd");
    data.expects_wait = result > 0 && static_cast<std::uint32_t>(result) < op.length;
    return result;
  }

  std::int32_t read(std::span<std::byte> buffer) {
    if (buffer.empty()) return refused_by_pending() ? -ECANCELED : 0;  // it would wait for bytes
    return this->in_turn([&] { return move(buffer); });
  }

  std::int32_t write_all(std::span<const std::byte> buffer) {
    return this->in_turn([&]() -> std::int32_t {
      if (buffer.empty()) return refused_by_pending() ? -ECANCELED : 0;
      return move_whole(buffer, [&](std::span<const std::byte> part) { return move(part); });
    });
  }

  std::int32_t move_part(std::span<const iovec> buffers) {
    if (this->queue().closed()) return -EBADF;  // meanwhile
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(buffers.data());
    message.msg_iovlen = buffers.size();
    return move_message(message, MSG_NOSIGNAL, "write on fd");
  }

  std::int32_t transfer_message(msghdr& message) {
    return this->in_turn([&] {
      return Writes ? move_message(message, MSG_NOSIGNAL, "sendmsg on fd")
                    : move_message(message, MSG_CMSG_CLOEXEC, "recvmsg on fd");
    });
  }

 private:
  std::int32_t move_message(msghdr& message, int flags, const char* call) {
    operation op = this->state()->prepare(Writes ? verb::sendmsg : verb::recvmsg, flags);
    op.message = &message;
    return perform_now(op, call);
  }
};

}}}  // namespace motet::MOTET_ABI::detail
