// SPDX-License-Identifier: MIT
// See motet/io/reader.hpp. Bytes are taken only when a call returns, so that an interrupted call
// loses none.

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <motet/base/errors.hpp>
#include <motet/detail/io/read_buffer.hpp>
#include <stdexcept>

#include "core/thread_state.hpp"
#include "io/io.hpp"
#include "io/net/socket.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

constexpr std::size_t first_capacity = 4096;

}  // namespace

/// The order of the fibers that use one reader.
class read_buffer::turn : net::stream_turn {
 public:
  /// Throws: a pending interruption; std::logic_error if another thread's fiber has the
  /// turn.
  explicit turn(read_buffer& buffer) : stream_turn(buffer.order_, "turn with a reader", -1) {
    check_result(refusal(), "reader", -1);
  }
};

read_buffer::read_buffer(const stream_direction& source, std::size_t limit)
    : source_(source), limit_(limit) {
  if (limit == 0) throw std::invalid_argument("reader: the limit must be at least 1");
}

read_buffer::~read_buffer() = default;

/// Makes room for at least one more byte and, as far as the capacity allows, for `minimum` bytes in
/// all. The buffer grows with the bytes received, not with the size that a peer has announced.
void read_buffer::make_space(std::size_t minimum) {
  if (begin_ == end_) begin_ = end_ = 0;
  const std::size_t content_size = end_ - begin_;
  if (content_size == capacity_) {
    grow();
  } else if (begin_ > 0 && (minimum > capacity_ - begin_ || end_ == capacity_)) {
    std::memmove(bytes_.get(), bytes_.get() + begin_, content_size);
    begin_ = 0;
    end_ = content_size;
  }
}

/// Gives a buffer that is full, or is none yet, more capacity.
void read_buffer::grow() {
  const std::size_t capacity = std::max(first_capacity, capacity_ * 2);
  owned<std::byte[]> larger(new std::byte[capacity]);
  std::copy_n(bytes_.get(), capacity_, larger.get());
  bytes_ = std::move(larger);
  capacity_ = capacity;
}

/// Reads once, with room made for `minimum` bytes. Returns: false at the end.
bool read_buffer::fill(std::size_t minimum) {
  make_space(minimum);
  std::error_code error;
  const std::size_t size = read_stream({bytes_.get() + end_, capacity_ - end_}, error);
  if (error) throw_stream_error(error, "read");
  end_ += size;
  return size > 0;
}

std::size_t read_buffer::read_stream(std::span<std::byte> buffer, std::error_code& error) noexcept {
  direction_lock lock(source_, error);
  return error ? 0 : lock.read(buffer, error);
}

/// Returns: the first `size` bytes; consumes these and `trailer_size` more.
std::string_view read_buffer::take(std::size_t size, std::size_t trailer_size) {
  const std::string_view bytes = held().substr(0, size);
  begin_ += size + trailer_size;
  return bytes;
}

/// Searches for the delimiter behind at most `maximum` bytes.
/// Returns: the number of bytes before it; std::nullopt if the end comes first.
/// Throws: limit_exceeded, with `limit` in its message.
std::optional<std::size_t> read_buffer::find(std::string_view delimiter, std::size_t maximum,
                                             std::size_t limit) {
  std::size_t looked_at = 0;
  for (;;) {
    const std::string_view bytes = held();
    const std::size_t position = bytes.find(delimiter, looked_at);
    if (position != std::string_view::npos && position <= maximum) return position;
    const bool too_far =
        bytes.size() >= delimiter.size() && bytes.size() - delimiter.size() >= maximum;
    if (position != std::string_view::npos || too_far) {
      throw limit_exceeded(std::min(position, bytes.size()), limit);
    }
    looked_at = bytes.size() - std::min(bytes.size(), delimiter.size() - 1);
    if (!fill(bytes.size() + 1)) return std::nullopt;
  }
}

std::optional<std::string_view> read_buffer::until(std::string_view delimiter, std::size_t limit) {
  if (delimiter.empty()) throw std::invalid_argument("reader::until(): the delimiter is empty");
  here().deliver();
  const turn turn_lock(*this);
  const std::optional<std::size_t> size = find(delimiter, limit, limit);
  if (size.has_value()) return take(*size, delimiter.size());
  if (held().empty()) return std::nullopt;
  throw unexpected_eof(held().size());
}

/// The "\r" of an end of a line does not count.
std::optional<std::string_view> read_buffer::line(std::size_t limit) {
  here().deliver();
  const turn turn_lock(*this);
  const std::size_t maximum = limit + (limit == std::numeric_limits<std::size_t>::max() ? 0 : 1);
  const std::optional<std::size_t> size = find("\n", maximum, limit);
  if (!size.has_value() && held().empty()) return std::nullopt;
  const std::string_view whole = held().substr(0, size.value_or(std::string_view::npos));
  const std::size_t carriage_return = size.has_value() && whole.ends_with('\r') ? 1 : 0;
  if (whole.size() - carriage_return > limit) throw limit_exceeded(whole.size(), limit);
  return take(whole.size() - carriage_return, carriage_return + (size.has_value() ? 1 : 0));
}

std::span<const std::byte> read_buffer::peek(std::size_t size) {
  here().deliver();
  const turn turn_lock(*this);
  if (size > limit_) throw limit_exceeded(size, limit_);
  while (end_ - begin_ < size && fill(size)) {
  }
  return std::as_bytes(std::span(held()));
}

std::span<const std::byte> read_buffer::exactly(std::size_t size) {
  here().deliver();
  const turn turn_lock(*this);
  if (size > limit_) throw limit_exceeded(size, limit_);
  while (end_ - begin_ < size) {
    if (!fill(size)) throw unexpected_eof(end_ - begin_, size);
  }
  return std::as_bytes(std::span(take(size, 0)));
}

void read_buffer::skip(std::size_t size) {
  here().deliver();
  const turn turn_lock(*this);
  for (std::size_t bytes_dropped = 0;;) {
    const std::size_t part = std::min(size - bytes_dropped, end_ - begin_);
    begin_ += part;
    bytes_dropped += part;
    if (bytes_dropped == size) return;
    if (!fill(1)) throw unexpected_eof(bytes_dropped, size);
  }
}

std::size_t read_buffer::read(std::span<std::byte> buffer) {
  here().deliver();
  std::error_code error;
  const std::size_t size = read(buffer, error);
  if (error) throw_stream_error(error, "read");
  return size;
}

std::size_t read_buffer::read(std::span<std::byte> buffer, std::error_code& error) noexcept {
  quietly(error, [&] {
    if (refused_by_pending()) return -ECANCELED;
    if (buffer.empty()) return 0;  // the stream would wait for bytes to come
    return net::acquire_turn(order_, "turn with a reader", -1);
  });
  if (error || buffer.empty()) return 0;
  std::size_t size = std::min(buffer.size(), end_ - begin_);
  if (size > 0) {
    std::copy_n(bytes_.get() + begin_, size, buffer.data());
    begin_ += size;
  } else {
    size = read_stream(buffer, error);
  }
  order_.release();
  return size;
}

}}}  // namespace motet::MOTET_ABI::detail
