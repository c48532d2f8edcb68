// SPDX-License-Identifier: MIT
// See motet/pipe.hpp.
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <motet/detail/io/stream_queue.hpp>
#include <motet/errors.hpp>
#include <motet/pipe.hpp>
#include <stdexcept>

#include "base/faults.hpp"
#include "core/thread_state.hpp"
#include "io/io.hpp"
#include "io/net/socket.hpp"
#include "io/vectors.hpp"

namespace motet { inline namespace MOTET_ABI {

using net::stream_turn;

struct pipe::end {
  explicit end(fd opened) noexcept : file(std::move(opened)) {}

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
      const std::int32_t written = move(verb::write, buffer.data(), buffer.size());
      if (written < 0) return written;
      buffer = buffer.subspan(static_cast<std::size_t>(written));
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
  static void let_go(detail::owned<end> closed) noexcept {
    if (closed == nullptr || !closed->queue.kept()) return;
    detail::thread_state* thread = detail::self();
    if (thread != nullptr) thread->snooze();  // lets the turn's holder notice the close
    if (!closed->queue.kept()) return;
    closed->is_let_go = true;
    (void)closed.release();
  }
};

namespace {

/// Waits for the turn on `end` and makes `call`; -EBADF if there is no such end.
template <typename End, typename Call>
std::int32_t in_turn(End* end, const char* what, Call call) {
  if (end == nullptr) return -EBADF;
  const stream_turn turn(end->queue, what, end->file.get());
  return turn.refusal() != 0 ? turn.refusal() : call(*end);
}

/// Where the kernel cannot be told by call not to wait on a pipe, as before Linux 6.4, the pipe is
/// in non-blocking mode; elsewhere that would cost a ring two operations more for each wait.
void make_fit_for_fibers(int reading, int writing) noexcept {
  std::byte nothing{};
  const iovec room{&nothing, 1};
  if (detail::faults::call("preadv2", ::preadv2, reading, &room, 1, off_t{-1}, RWF_NOWAIT) >= 0 ||
      errno == EAGAIN) {
    return;
  }
  for (const int each : {reading, writing}) ::fcntl(each, F_SETFL, O_NONBLOCK);
}

constexpr char reading_turn[] = "turn to read on fd";
constexpr char writing_turn[] = "turn to write on fd";

}  // namespace

pipe pipe::open() {
  std::array<int, 2> made{-1, -1};
  if (detail::faults::call("pipe2", ::pipe2, made.data(), O_CLOEXEC) != 0) {
    detail::throw_errno(errno, "pipe2");
  }
  fd reading(made[0]);
  fd writing(made[1]);
  make_fit_for_fibers(made[0], made[1]);
  return pipe(std::move(reading), std::move(writing));
}

pipe::pipe() noexcept = default;
pipe::pipe(fd reading, fd writing)
    : read_end_(reading ? new end(std::move(reading)) : nullptr),
      write_end_(writing ? new end(std::move(writing)) : nullptr) {}
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
  const std::int32_t result = in_turn(read_end_.get(), reading_turn, [&](end& from) {
    return from.move(verb::read, buffer.data(), buffer.size());
  });
  return detail::check_result(result, "read", number);
}

std::size_t pipe::read(std::span<std::byte> buffer, std::error_code& error) noexcept {
  return detail::quietly(error, [&] {
    return in_turn(read_end_.get(), reading_turn,
                   [&](end& from) { return from.move(verb::read, buffer.data(), buffer.size()); });
  });
}

std::size_t pipe::write(std::span<const std::byte> buffer) {
  detail::here().deliver();
  const int number = native_handle(SHUT_WR);  // the pipe may be moved while the call waits
  const std::int32_t result = in_turn(write_end_.get(), writing_turn, [&](end& to) {
    return to.move(verb::write, buffer.data(), buffer.size());
  });
  return detail::check_result(result, "write", number);
}

std::size_t pipe::write(std::span<const std::byte> buffer, std::error_code& error) noexcept {
  return detail::quietly(error, [&] {
    return in_turn(write_end_.get(), writing_turn,
                   [&](end& to) { return to.move(verb::write, buffer.data(), buffer.size()); });
  });
}

void pipe::write_all(std::span<const std::byte> buffer) {
  detail::here().deliver();
  const int number = native_handle(SHUT_WR);  // the pipe may be moved while the call waits
  const std::int32_t result =
      in_turn(write_end_.get(), writing_turn, [&](end& to) { return to.write_whole(buffer); });
  detail::check_result(result, "write_all", number);
}

void pipe::write_all(std::string_view text) {
  write_all(std::as_bytes(std::span(text)));
}

void pipe::write_all(std::span<const std::byte> buffer, std::error_code& error) noexcept {
  detail::quietly(error, [&] {
    return in_turn(write_end_.get(), writing_turn, [&](end& to) { return to.write_whole(buffer); });
  });
}

void pipe::writev_all(std::span<const iovec> buffers) {
  detail::here().deliver();
  const int number = native_handle(SHUT_WR);  // the pipe may be moved while the call waits
  const std::int32_t result = in_turn(write_end_.get(), writing_turn, [&](end& to) {
    return detail::move_vectors(
        buffers, [&](std::span<const iovec> part) { return to.write_vectors(part); });
  });
  detail::check_result(result, "writev_all", number);
}

void pipe::close(detail::owned<end>& closing) {
  if (closing == nullptr) return;
  closing->check_thread();
  detail::owned<end> closed = std::move(closing);
  closed->end_calls();
  closed->file.close();
  end::let_go(std::move(closed));
}

/// Ends the calls on both ends before it closes an end, which the other end would see as end of
/// file.
void pipe::close() {
  if (read_end_ != nullptr) read_end_->check_thread();
  if (write_end_ != nullptr) write_end_->check_thread();
  std::array<detail::owned<end>, 2> closed{std::move(write_end_), std::move(read_end_)};
  for (const detail::owned<end>& each : closed) {
    if (each != nullptr) each->end_calls();
  }
  for (detail::owned<end>& each : closed) {
    if (each != nullptr) each->file.close();
    end::let_go(std::move(each));
  }
}

void pipe::shutdown(int how) {
  switch (how) {
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

fd pipe::release(int how) {
  if (how != SHUT_RD && how != SHUT_WR) {
    throw std::invalid_argument("pipe::release(): the argument must be SHUT_RD or SHUT_WR");
  }
  detail::owned<end>& from = how == SHUT_RD ? read_end_ : write_end_;
  if (from == nullptr) return fd();
  from->check_thread();
  detail::owned<end> left = std::move(from);
  left->end_calls();
  fd released = std::move(left->file);
  end::let_go(std::move(left));
  return released;
}

namespace {

/// Of an end of kind `End`, in the pipe's member `Which`.
template <typename Pipe, typename End, detail::owned<End> Pipe::* Which, verb Kind>
struct end_calls {
  static void* take(void* stream, std::error_code& error) noexcept {
    End* wanted = (static_cast<Pipe*>(stream)->*Which).get();
    detail::quietly(error, [&]() -> std::int32_t {
      const char* what = Kind == verb::read ? reading_turn : writing_turn;
      return wanted == nullptr ? -EBADF : net::take_turn(wanted->queue, what, wanted->file.get());
    });
    if (!error) wanted->queue.keep();
    return wanted;
  }
  static void pass(void* held) noexcept {
    auto* passed = static_cast<End*>(held);
    passed->queue.pass();
    if (passed->is_let_go) delete passed;
  }
  static std::size_t move(void* held, std::span<std::byte> bytes, std::error_code& error) noexcept {
    return detail::quietly(
        error, [&] { return static_cast<End*>(held)->move(Kind, bytes.data(), bytes.size()); });
  }
  static int descriptor(void* held) noexcept { return static_cast<End*>(held)->file.get(); }

  static constexpr detail::direction_calls calls{take, pass, move, descriptor};
};

}  // namespace

detail::stream_direction pipe::input_direction() noexcept {
  return {this, &end_calls<pipe, end, &pipe::read_end_, verb::read>::calls};
}

detail::stream_direction pipe::output_direction() noexcept {
  return {this, &end_calls<pipe, end, &pipe::write_end_, verb::write>::calls};
}

int pipe::native_handle(int how) const noexcept {
  const end* asked = how == SHUT_RD ? read_end_.get() : how == SHUT_WR ? write_end_.get() : nullptr;
  return asked == nullptr ? -1 : asked->file.get();
}

}}  // namespace motet::MOTET_ABI
