// SPDX-License-Identifier: MIT
// See motet/writer.hpp. With the first byte the writer takes the stream's turn, and has a fiber
// made that flushes: that fiber runs when the one that writes waits or snoozes. Bytes are added to
// one part while another is being sent; the mutex makes the fibers that send come one by one.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <motet/cancel.hpp>
#include <motet/detail/io/write_buffer.hpp>
#include <motet/errors.hpp>
#include <mutex>
#include <stdexcept>

#include "heart/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

constexpr std::chrono::milliseconds last_moment(10);

}  // namespace

write_buffer::write_buffer(const stream_direction& to, std::size_t capacity, call_site site)
    : to_(to), capacity_(capacity), site_(site), unwinding_(std::uncaught_exceptions()) {
  if (capacity == 0) throw std::invalid_argument("a writer's capacity must be at least 1");
  filling_.bytes = owned<std::byte[]>(new std::byte[capacity]);
  sending_.bytes = owned<std::byte[]>(new std::byte[capacity]);
}

/// A failure is dropped: flush() would have told of it. What is pending for the fiber stays so, but
/// as the body has not been left by it, the bytes have a moment to go.
write_buffer::~write_buffer() {
  if (buffered() == 0 || std::uncaught_exceptions() > unwinding_) return;
  try {
    const std::lock_guard in(calls_);
    const std::lock_guard alone(sends_);
    if (failure_ || send_all() != std::errc::operation_canceled) return;
    control_block& fiber = here().running();
    ++fiber.shields;
    move_on_after(last_moment, [this] { send_all(); });
    --fiber.shields;
  } catch (const cancelled&) {  // it is thrown again at the next switchpoint
  } catch (...) {
    current().raise(std::current_exception());
  }
}

void write_buffer::write(std::span<const std::byte> bytes) {
  const std::lock_guard in(calls_);
  check_failure();
  if (bytes.empty()) return;
  begin();
  if (bytes.size() > capacity_ - filling_.size()) {
    const std::lock_guard alone(sends_);
    check_failure();
    hold_turn();  // a fiber that flushed meanwhile has passed it
    settle(send_all());
    if (bytes.size() > capacity_) {
      settle(send(bytes));
      end_unless_more();
      return;
    }
  }
  std::copy(bytes.begin(), bytes.end(), filling_.bytes.get() + filling_.end);
  filling_.end += bytes.size();
}

void write_buffer::flush() {
  const std::lock_guard in(calls_);
  const std::lock_guard alone(sends_);
  check_failure();
  settle(send_all());
  end_unless_more();
}

void write_buffer::check_failure() const {
  if (failure_) throw std::system_error(failure_, "write");
}

void write_buffer::hold_turn() {
  if (turn_) return;
  std::error_code error;
  turn_ = held_direction(to_, error);
  if (error) throw_stream_error(error, "write");
}

/// Takes the stream's turn, and sees to it that the bytes to come are flushed.
void write_buffer::begin() {
  hold_turn();
  try {
    flush_later();
  } catch (...) {
    end_unless_more();
    throw;
  }
}

void write_buffer::flush_later() {
  if (flush_is_due_) return;
  const auto flush_now = [this] {
    flush_is_due_ = false;
    const std::lock_guard alone(sends_);
    const std::error_code error = send_all();
    if (!error) end_unless_more();
    // It is being ended, and can do no more: others may write meanwhile.
    if (error == std::errc::operation_canceled) turn_ = held_direction();
  };
  flushing_.spin({.name = "flush"}, flush_now, site_);
  flush_is_due_ = true;
}

/// The caller is the only one that sends. `bytes` are shortened by what has been sent.
/// Returns: no error if that is all.
std::error_code write_buffer::send(std::span<const std::byte>& bytes) noexcept {
  std::error_code error;
  while (!bytes.empty() && !error) {
    bytes = bytes.subspan(turn_.write(bytes, error));
  }
  if (error && error != std::errc::operation_canceled) fail(error);
  return error;
}

/// The caller is the only one that sends.
std::error_code write_buffer::send_all() noexcept {
  std::error_code error;
  while (buffered() > 0 && !error) {
    if (sending_.size() == 0) {
      std::swap(filling_, sending_);
      filling_.begin = filling_.end = 0;
    }
    std::span<const std::byte> rest = sending_.held();
    error = send(rest);
    if (failure_) break;
    sending_.begin = sending_.end - rest.size();
  }
  return error;
}

/// Nothing more can be written to the stream.
void write_buffer::fail(const std::error_code& error) noexcept {
  failure_ = error;
  filling_.begin = filling_.end = 0;
  sending_.begin = sending_.end = 0;
  turn_ = held_direction();
}

/// Throws: what `error` is. What has not been sent then is flushed later.
void write_buffer::settle(const std::error_code& error) {
  if (!error) return;
  if (buffered() > 0) {
    try {
      flush_later();
    } catch (...) {  // no memory, or the owner is ending: the next call, or the end, flushes
    }
  }
  throw_stream_error(error, "write");
}

void write_buffer::end_unless_more() noexcept {
  if (buffered() == 0) turn_ = held_direction();
}

}}}  // namespace motet::MOTET_ABI::detail
