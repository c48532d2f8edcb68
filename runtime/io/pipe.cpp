// SPDX-License-Identifier: MIT
// See motet/io/pipe.hpp.
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <motet/base/errors.hpp>
#include <motet/io/pipe.hpp>
#include <stdexcept>

#include "base/faults.hpp"
#include "base/system_calls.hpp"
#include "core/thread_state.hpp"
#include "io/io.hpp"
#include "io/stream_calls.hpp"

namespace motet { inline namespace MOTET_ABI {

struct pipe::end : detail::stream_turns<end, 1> {
  explicit end(fd owned_file) noexcept : file(std::move(owned_file)) {}

  int descriptor() const noexcept { return file.get(); }

  /// Ends the calls on this end, and waits until their fibers have left it, so that it can be
  /// destroyed.
  void end_calls() noexcept {
    end_queues();
    if (detail::thread_state* thread = detail::self()) thread->calls.end_all_on(file.get());
    await_leave();
  }

  fd file;
};

template <bool Writes>
struct pipe::half : detail::stream_half<half<Writes>, end, Writes> {
  using detail::stream_half<half, end, Writes>::stream_half;
  static half of(void* stream) noexcept {
    auto& both = *static_cast<pipe*>(stream);
    return half((Writes ? both.write_end_ : both.read_end_).get());
  }
  int kernel_descriptor() const noexcept { return this->descriptor(); }

  /// Reads or writes, in the turn.
  std::int32_t move(std::span<const std::byte> bytes) {
    if (this->queue().closed()) return -EBADF;  // meanwhile
    operation op = detail::transfer(Writes ? verb::write : verb::read, this->descriptor(), bytes);
    return detail::perform_now(op, Writes ? "write on fd" : "read on fd");
  }

  std::int32_t move_part(std::span<const iovec> buffers) {
    if (this->queue().closed()) return -EBADF;  // meanwhile
    operation op;
    op.kind = verb::writev;
    op.fd = this->descriptor();
    op.vectors = buffers.data();
    op.length = static_cast<std::uint32_t>(buffers.size());
    return detail::perform_now(op, "writev on fd");
  }
};

namespace {

/// Where the kernel cannot be told by call not to wait on a pipe, as before Linux 6.4, the pipe is
/// in non-blocking mode; elsewhere that would cost a ring two operations more for each wait.
void make_fit_for_fibers(int read_fd, int write_fd) noexcept {
  std::byte byte{};
  const iovec room{&byte, 1};
  if (detail::faults::call("preadv2", detail::sys::preadv2, read_fd, &room, 1, off_t{-1},
                           RWF_NOWAIT) >= 0 ||
      errno == EAGAIN) {
    return;
  }
  for (const int number : {read_fd, write_fd}) detail::sys::fcntl(number, F_SETFL, O_NONBLOCK);
}

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
  return detail::stream_read(half<false>(read_end_.get()), buffer);
}
std::size_t pipe::read(std::span<std::byte> buffer, std::error_code& error) noexcept {
  return detail::stream_read(half<false>(read_end_.get()), buffer, error);
}

std::size_t pipe::write(std::span<const std::byte> buffer) {
  return detail::stream_write(half<true>(write_end_.get()), buffer);
}
std::size_t pipe::write(std::span<const std::byte> buffer, std::error_code& error) noexcept {
  return detail::stream_write(half<true>(write_end_.get()), buffer, error);
}

void pipe::write_all(std::span<const std::byte> buffer) {
  detail::stream_write_all(half<true>(write_end_.get()), buffer);
}
void pipe::write_all(std::string_view text) {
  write_all(std::as_bytes(std::span(text)));
}
void pipe::write_all(std::span<const std::byte> buffer, std::error_code& error) noexcept {
  detail::stream_write_all(half<true>(write_end_.get()), buffer, error);
}

void pipe::writev_all(std::span<const iovec> buffers) {
  detail::stream_writev_all(half<true>(write_end_.get()), buffers);
}

void pipe::close(detail::owned<end>& closing) {
  if (closing == nullptr) return;
  closing->check_threads("pipe");
  detail::owned<end> old_end = std::move(closing);
  old_end->end_calls();
  old_end->file.close();
  end::destroy_when_unused(std::move(old_end));
}

/// Ends the calls on both ends before it closes an end, which the other would see as end of file.
void pipe::close() {
  if (read_end_ != nullptr) read_end_->check_threads("pipe");
  if (write_end_ != nullptr) write_end_->check_threads("pipe");
  std::array<detail::owned<end>, 2> old_ends{std::move(write_end_), std::move(read_end_)};
  for (const detail::owned<end>& old_end : old_ends) {
    if (old_end != nullptr) old_end->end_calls();
  }
  for (detail::owned<end>& old_end : old_ends) {
    if (old_end != nullptr) old_end->file.close();
    end::destroy_when_unused(std::move(old_end));
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
  slot->check_threads("pipe");
  detail::owned<end> old_end = std::move(slot);
  old_end->end_calls();
  fd file = std::move(old_end->file);
  end::destroy_when_unused(std::move(old_end));
  return file;
}

detail::stream_direction pipe::input_direction() noexcept {
  return {this, &detail::direction_of<half<false>>::calls};
}

detail::stream_direction pipe::output_direction() noexcept {
  return {this, &detail::direction_of<half<true>>::calls};
}

int pipe::native_handle(int side) const noexcept {
  const end* open_end = side == SHUT_RD   ? read_end_.get()
                        : side == SHUT_WR ? write_end_.get()
                                          : nullptr;
  return open_end == nullptr ? -1 : open_end->file.get();
}

}}  // namespace motet::MOTET_ABI
