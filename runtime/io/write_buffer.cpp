// SPDX-License-Identifier: MIT
// See motet/io/writer.hpp. With the first byte the writer acquires the stream's turn, and schedules
// a fiber that flushes: it runs when the writing fiber waits or snoozes. Bytes are added to one
// part while another is being sent; the mutex serialises the fibers that send.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <motet/base/errors.hpp>
#include <motet/cancellation/cancel.hpp>
#include <motet/detail/core/internal_shield.hpp>
#include <motet/detail/io/write_buffer.hpp>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

constexpr std::chrono::milliseconds last_moment(10);

}  // namespace

write_buffer::write_buffer(const stream_direction& target, std::size_t capacity, call_site site)
    : destination_(target),
      capacity_(capacity),
      site_(site),
      exceptions_(std::uncaught_exceptions()) {
  if (capacity == 0) throw std::invalid_argument("writer: the capacity must be at least 1");
  input_.bytes = owned<std::byte[]>(new std::byte[capacity]);
  outgoing_.bytes = owned<std::byte[]>(new std::byte[capacity]);
}

/// Drops a failure, which flush() would have reported. A pending interruption stays pending, but
/// because it has not unwound the body, the bytes get a short time to be sent.
write_buffer::~write_buffer() {
  if (buffered() == 0 || std::uncaught_exceptions() > exceptions_) return;
  try {
    const std::lock_guard lock(calls_);
    const std::lock_guard alone(sends_);
    if (failure_ || send_all() != std::errc::operation_canceled) return;
    const internal_shield safe;
    move_on_after(last_moment, [this] { (void)send_all(); });
  } catch (const cancelled&) {  // it is thrown again at the next switchpoint
  } catch (...) {
    current().raise(std::current_exception());
  }
}

void write_buffer::write_text(std::string_view text) {
  write(std::as_bytes(std::span(text)));
}

void write_buffer::write(std::span<const std::byte> bytes) {
  const std::lock_guard lock(calls_);
  check_failure();
  if (bytes.empty()) return;
  const bool flushed_later = begin();
  if (bytes.size() > capacity_ - input_.size()) {
    const std::lock_guard alone(sends_);
    check_failure();
    settle(send_all());
    settle(acquire_turn());  // a fiber that flushed meanwhile has released it
    if (bytes.size() > capacity_) {
      settle(send(bytes));
      end_unless_more();
      return;
    }
  }
  std::copy(bytes.begin(), bytes.end(), input_.bytes.get() + input_.end);
  input_.end += bytes.size();
  if (!flushed_later) flush_gathered();
}

/// The bytes count as written, whatever interrupts this: the next call, or the end, sends the rest.
/// A fiber that is sending sends them, too.
void write_buffer::flush_gathered() {
  const std::unique_lock alone(sends_, std::try_to_lock);
  if (!alone) return;
  flush_alone();
  check_failure();
}

void write_buffer::flush() {
  const std::lock_guard lock(calls_);
  const std::lock_guard alone(sends_);
  check_failure();
  settle(send_all());
  end_unless_more();
}

void write_buffer::check_failure() const {
  if (failure_) throw std::system_error(failure_, "write");
}

/// The caller must be the only sender: of two that wait for the turn one would get it while the
/// other holds it.
std::error_code write_buffer::acquire_turn() noexcept {
  std::error_code error;
  if (!turn_) turn_ = direction_lock(destination_, error);
  return error;
}

/// Takes the stream's turn, and sees to it that the bytes to come are flushed.
/// Returns: false if no fiber can be made for that, though the caller may wait, as in a handler or
///          a destructor: then the caller flushes.
bool write_buffer::begin() {
  if (!turn_) {
    const std::lock_guard alone(sends_);
    if (const std::error_code error = acquire_turn()) throw_stream_error(error, "write");
  }
  if (flush_later()) return true;
  if (!here().must_throw()) return false;
  end_unless_more();
  here().throw_pending();
}

/// The body of the flushing fiber. Its destructor notices if it never ran.
class write_buffer::flusher {
 public:
  explicit flusher(write_buffer& buffer) noexcept : buffer_(&buffer) {}
  flusher(flusher&& other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)) {}
  flusher& operator=(flusher&&) = delete;
  ~flusher() {
    if (buffer_ != nullptr && buffer_->flush_is_due_) buffer_->give_up_flush();
  }
  void operator()() { std::exchange(buffer_, nullptr)->flush_in_fiber(); }

 private:
  write_buffer* buffer_;
};

/// Returns: false if no fiber could be made: there is no memory, or the owner is ending.
bool write_buffer::flush_later() noexcept {
  if (flush_is_due_) return true;
  try {
    flushers_.spin({.name = "flush"}, flusher(*this), site_);
    flush_is_due_ = true;
  } catch (...) {
  }
  return flush_is_due_;
}

void write_buffer::flush_in_fiber() {
  flush_is_due_ = false;
  const std::lock_guard alone(sends_);
  flush_alone();
}

/// The caller is the only sender. If it is interrupted, the bytes stay buffered, and the turn
/// passes.
void write_buffer::flush_alone() noexcept {
  const std::error_code error = send_all();
  if (!error) end_unless_more();
  if (error == std::errc::operation_canceled) turn_ = direction_lock();
}

/// The fiber is being ended, and can do no more: others may write meanwhile. A fiber that is
/// sending has the turn, and passes it.
void write_buffer::give_up_flush() noexcept {
  flush_is_due_ = false;
  const std::unique_lock alone(sends_, std::try_to_lock);
  if (alone) turn_ = direction_lock();
}

/// The caller is the only sender. Removes the bytes sent from `bytes`.
/// Returns: no error if all were sent.
std::error_code write_buffer::send(std::span<const std::byte>& bytes) noexcept {
  std::error_code error;
  while (!bytes.empty() && !error) {
    bytes = bytes.subspan(turn_.write(bytes, error));
  }
  if (error && error != std::errc::operation_canceled) fail(error);
  return error;
}

/// The caller is the only sender.
std::error_code write_buffer::send_all() noexcept {
  std::error_code error = buffered() > 0 ? acquire_turn() : std::error_code();
  while (buffered() > 0 && !error) {
    if (outgoing_.size() == 0) {
      std::swap(input_, outgoing_);
      input_.begin = input_.end = 0;
    }
    std::span<const std::byte> rest(outgoing_.bytes.get() + outgoing_.begin, outgoing_.size());
    error = send(rest);
    if (failure_) break;
    outgoing_.begin = outgoing_.end - rest.size();
  }
  return error;
}

/// The stream accepts no more bytes.
void write_buffer::fail(const std::error_code& error) noexcept {
  failure_ = error;
  input_.begin = input_.end = 0;
  outgoing_.begin = outgoing_.end = 0;
  turn_ = direction_lock();
}

/// Throws: what `error` is. What has not been sent then is flushed later, by the next call or the
///         end if no fiber can be made for it.
void write_buffer::settle(const std::error_code& error) {
  if (!error) return;
  if (buffered() > 0) flush_later();
  throw_stream_error(error, "write");
}

void write_buffer::end_unless_more() noexcept {
  if (buffered() == 0) turn_ = direction_lock();
}

}}}  // namespace motet::MOTET_ABI::detail
