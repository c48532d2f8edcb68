// SPDX-License-Identifier: MIT
// See motet/io/pipe.hpp.
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <motet/base/errors.hpp>
#include <motet/detail/io/stream_queue.hpp>
#include <motet/io/pipe.hpp>
#include <stdexcept>

#include "base/faults.hpp"
#include "core/thread_state.hpp"
#include "io/io.hpp"
#include "io/net/socket.hpp"
#include "io/vectors.hpp"

namespace motet { inline namespace MOTET_ABI {

using net::stream_turn;

struct pipe::end {
  explicit end(fd descriptor) noexcept : file(std::move(descriptor)) {}

  fd file;
  detail::stream_queue queue;
  bool is_let_go = false;  // the end is closed, but its turn is kept

  /// Reads or writes at most `size` bytes; the caller has the turn.
  std::int32_t move(verb kind, const std::byte* bytes, std::size_t size) {
    if (queue.closed()) return -EBADF;  // meanwhile
    operation op = detail::transfer(kind, file.get(), {bytes, size});
    return detail::perform_now(op, kind == verb::write ? "write on fd" : "read on fd");
  }

  std::int32_t write_vectors(std::span<const iovec> buffers) {
    if (queue.closed()) return -EBADF;  // meanwhile
    operation op;
    op.kind = verb::writev;
    op.fd = file.get();
    op.vectors = buffers.data();
    op.length = static_cast<std::uint32_t>(buffers.size());
    return detail::perform_now(op, "writev on fd");
  }

  std::int32_t write_whole(std::span<const std::byte> buffer) {
    do {
      const std::int32_t count = move(verb::write, buffer.data(), buffer.size());
      if (count < 0) return count;
      buffer = buffer.subspan(static_cast<std::size_t>(count));
    } while (!buffer.empty());
    return 0;
  }

  void check_thread() {
    if (queue.taken_elsewhere()) {
      throw std::logic_error("pipe: a fiber of another thread is reading from it or writing to it");
    }
  }

  /// Ends the calls on this end, and waits until their fibers have left it, so that it can be
  /// destroyed.
  void end_calls() noexcept {
    queue.close();
    detail::thread_state* thread = detail::self();
    if (thread == nullptr) return;
    thread->calls.end_all_on(file.get());
    while (queue.in_use()) thread->snooze();
  }

  /// Destroys an end without calls, or has it destroyed by the fiber that keeps its turn.
  static void let_go(detail::owned<end> old_end) noexcept {
    if (old_end == nullptr || !old_end->queue.kept()) return;
    detail::thread_state* thread = detail::self();
    if (thread != nullptr) thread->snooze();  // lets the turn's holder notice the close
    if (!old_end->queue.kept()) return;
    old_end->is_let_go = true;
    (void)old_end.release();
  }
};

namespace {

/// Waits for the turn on `end` and makes `call`; -EBADF if there is no such end.
template <typename End, typename Call>
std::int32_t in_turn(End* end, const char* turn_name, Call call) {
  if (end == nullptr) return -EBADF;
  const stream_turn turn(end->queue, turn_name, end->file.get());
  return turn.refusal() != 0 ? turn.refusal() : call(*end);
}

/// Where the kernel cannot be told by call not to wait on a pipe, as before Linux 6.4, the pipe is
/// in non-blocking mode; elsewhere that would cost a ring two operations more for each wait.
void make_fit_for_fibers(int read_fd, int write_fd) noexcept {
  std::byte byte{};
  const iovec room{&byte, 1};
  if (detail::faults::call("preadv2", ::preadv2, read_fd, &room, 1, off_t{-1}, RWF_NOWAIT) >= 0 ||
      errno == EAGAIN) {
    return;
  }
  for (const int number : {read_fd, write_fd}) ::fcntl(number, F_SETFL, O_NONBLOCK);
}

constexpr char reading_turn[] = "turn to read on fd";
constexpr char writing_turn[] = "turn to write on fd";

}  // namespace

pipe pipe::open() {
  std::array<int, 2> numbers{-1, -1};
  if (detail::faults::call("pipe2", ::pipe2, numbers.data(), O_CLOEXEC) != 0) {
    detail::throw_errno(errno, "pipe2");
  }
  fd read_fd(numbers[0]);
  fd write_fd(numbers[1]);
  make_fit_for_fibers(numbers[0], numbers[1]);
  return pipe(std::move(read_fd), std::move(write_fd));
}

pipe::pipe() noexcept = default;
pipe::pipe(fd read_fd, fd write_fd)
    : read_end_(read_fd ? new end(std::move(read_fd)) : nullptr),
      write_end_(write_fd ? new end(std::move(write_fd)) : nullptr) {}
pipe::pipe(pipe&&) noexcept = default;

pipe& pipe::operator=(pipe&& other) noexcept {
  if (this != &other) {
    close();
    read_end_ = std::move(other.read_end_);
    write_end_ = std::move(other.write_end_);
  }
  return *this;
}

pipe::~pipe() {
  close();
}

std::size_t pipe::read(std::span<std::byte> buffer) {
  detail::here().deliver();
  const int number = native_handle(SHUT_RD);  // the pipe may be moved while the call waits
  const std::int32_t result = in_turn(read_end_.get(), reading_turn, [&](end& half) {
    return half.move(verb::read, buffer.data(), buffer.size());
  });
  return detail::check_result(result, "read", number);
}

std::size_t pipe::read(std::span<std::byte> buffer, std::error_code& error) noexcept {
  return detail::quietly(error, [&] {
    return in_turn(read_end_.get(), reading_turn,
                   [&](end& half) { return half.move(verb::read, buffer.data(), buffer.size()); });
  });
}

std::size_t pipe::write(std::span<const std::byte> buffer) {
  detail::here().deliver();
  const int number = native_handle(SHUT_WR);  // the pipe may be moved while the call waits
  const std::int32_t result = in_turn(write_end_.get(), writing_turn, [&](end& half) {
    return half.move(verb::write, buffer.data(), buffer.size());
  });
  return detail::check_result(result, "write", number);
}

std::size_t pipe::write(std::span<const std::byte> buffer, std::error_code& error) noexcept {
  return detail::quietly(error, [&] {
    return in_turn(write_end_.get(), writing_turn,
                   [&](end& half) { return half.move(verb::write, buffer.data(), buffer.size()); });
  });
}

void pipe::write_all(std::span<const std::byte> buffer) {
  detail::here().deliver();
  const int number = native_handle(SHUT_WR);  // the pipe may be moved while the call waits
  const std::int32_t result =
      in_turn(write_end_.get(), writing_turn, [&](end& half) { return half.write_whole(buffer); });
  detail::check_result(result, "write_all", number);
}

void pipe::write_all(std::string_view text) {
  write_all(std::as_bytes(std::span(text)));
}

void pipe::write_all(std::span<const std::byte> buffer, std::error_code& error) noexcept {
  detail::quietly(error, [&] {
    return in_turn(write_end_.get(), writing_turn,
                   [&](end& half) { return half.write_whole(buffer); });
  });
}

void pipe::writev_all(std::span<const iovec> buffers) {
  detail::here().deliver();
  const int number = native_handle(SHUT_WR);  // the pipe may be moved while the call waits
  const std::int32_t result = in_turn(write_end_.get(), writing_turn, [&](end& half) {
    return detail::move_vectors(
        buffers, [&](std::span<const iovec> part) { return half.write_vectors(part); });
  });
  detail::check_result(result, "writev_all", number);
}

void pipe::close(detail::owned<end>& closing) {
  if (closing == nullptr) return;
  closing->check_thread();
  detail::owned<end> old_end = std::move(closing);
  old_end->end_calls();
  old_end->file.close();
  end::let_go(std::move(old_end));
}

/// Ends the calls on both ends before it closes an end, which the other would see as end of file.
void pipe::close() {
  if (read_end_ != nullptr) read_end_->check_thread();
  if (write_end_ != nullptr) write_end_->check_thread();
  std::array<detail::owned<end>, 2> old_ends{std::move(write_end_), std::move(read_end_)};
  for (const detail::owned<end>& old_end : old_ends) {
    if (old_end != nullptr) old_end->end_calls();
  }
  for (detail::owned<end>& old_end : old_ends) {
    if (old_end != nullptr) old_end->file.close();
    end::let_go(std::move(old_end));
  }
}

void pipe::shutdown(int side) {
  switch (side) {
    case SHUT_RD:
      return close(read_end_);
    case SHUT_WR:
      return close(write_end_);
    case SHUT_RDWR:
      return close();
    default:
      throw std::invalid_argument(
          "pipe::shutdown(): the argument must be SHUT_RD, SHUT_WR or SHUT_RDWR");
  }
}

fd pipe::release(int side) {
  if (side != SHUT_RD && side != SHUT_WR) {
    throw std::invalid_argument("pipe::release(): the argument must be SHUT_RD or SHUT_WR");
  }
  detail::owned<end>& slot = side == SHUT_RD ? read_end_ : write_end_;
  if (slot == nullptr) return fd();
  slot->check_thread();
  detail::owned<end> old_end = std::move(slot);
  old_end->end_calls();
  fd file = std::move(old_end->file);
  end::let_go(std::move(old_end));
  return file;
}

namespace {

/// Of an end of kind `End`, in the pipe's member `Which`.
template <typename Pipe, typename End, detail::owned<End> Pipe::* Which, verb Kind>
struct end_calls {
  static void* take(void* stream, std::error_code& error) noexcept {
    End* user = (static_cast<Pipe*>(stream)->*Which).get();
    detail::quietly(error, [&]() -> std::int32_t {
      const char* turn_name = Kind == verb::read ? reading_turn : writing_turn;
      return user == nullptr ? -EBADF : net::take_turn(user->queue, turn_name, user->file.get());
    });
    if (!error) user->queue.keep();
    return user;
  }
  static void pass(void* object) noexcept {
    auto* user = static_cast<End*>(object);
    user->queue.pass();
    if (user->is_let_go) delete user;
  }
  static std::size_t move(void* object, std::span<std::byte> bytes,
                          std::error_code& error) noexcept {
    return detail::quietly(
        error, [&] { return static_cast<End*>(object)->move(Kind, bytes.data(), bytes.size()); });
  }
  static int descriptor(void* object) noexcept { return static_cast<End*>(object)->file.get(); }

  static constexpr detail::direction_calls calls{take, pass, move, descriptor};
};

}  // namespace

detail::stream_direction pipe::input_direction() noexcept {
  return {this, &end_calls<pipe, end, &pipe::read_end_, verb::read>::calls};
}

detail::stream_direction pipe::output_direction() noexcept {
  return {this, &end_calls<pipe, end, &pipe::write_end_, verb::write>::calls};
}

int pipe::native_handle(int side) const noexcept {
  const end* half = side == SHUT_RD   ? read_end_.get()
                    : side == SHUT_WR ? write_end_.get()
                                      : nullptr;
  return half == nullptr ? -1 : half->file.get();
}

}}  // namespace motet::MOTET_ABI
