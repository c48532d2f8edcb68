// SPDX-License-Identifier: MIT
// Lines, and other pieces, of a stream.
#pragma once

#include <cstddef>
#include <iterator>
#include <motet/detail/io/read_buffer.hpp>
#include <motet/io/stream.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>

namespace motet { inline namespace MOTET_ABI {

/// Reads a stream in units such as lines. The stream must outlive the reader, and must not be
/// moved. Bytes that were read ahead belong to the reader: reading from the stream directly misses
/// them. A view that a call returns is valid until the next call. Fibers that use one reader
/// concurrently are served in the order of their calls; a view is then valid until the next
/// switchpoint. To be used on one thread at a time.
///
/// Calls throw std::system_error, and a pending interruption. No exception loses bytes: the next
/// call continues with the same ones.
template <stream Stream>
class reader {
 public:
  /// `limit`: the most bytes that exactly() and peek() may request, and, unless the call has a
  /// limit of its own, the most in a line or in what until() returns. On its first read, the reader
  /// allocates 4 KiB, and more as longer pieces arrive.
  /// Not a switchpoint.
  /// Throws: std::invalid_argument for 0.
  explicit reader(Stream& source, std::size_t limit = std::size_t{64} * 1024)
      : buffer_(detail::input_of(source), limit) {}

  /// Returns: the bytes before the next `delimiter`, which it skips; std::nullopt at the end.
  /// Switchpoint.
  /// Throws: limit_exceeded if there are more than `limit` bytes without a delimiter;
  ///         unexpected_eof if the end comes first; std::invalid_argument for an empty delimiter.
  std::optional<std::string_view> until(std::string_view delimiter) {
    return buffer_.until(delimiter, buffer_.limit());
  }
  std::optional<std::string_view> until(std::string_view delimiter, std::size_t limit) {
    return buffer_.until(delimiter, limit);
  }

  /// Returns: the next line, without its "\n" or "\r\n", which the last line need not have;
  ///          std::nullopt at the end. If a truncated last line must not count, use
  ///          until("\n").
  /// Switchpoint.
  /// Throws: limit_exceeded if the line is longer than the limit.
  std::optional<std::string_view> line() { return buffer_.line(buffer_.limit()); }
  std::optional<std::string_view> line(std::size_t limit) { return buffer_.line(limit); }

  /// Returns: a single-pass range of the remaining lines; each step calls line().
  /// Not a switchpoint.
  auto lines() & { return line_range(buffer_); }

  /// Returns: the next `size` bytes.
  /// Switchpoint.
  /// Throws: unexpected_eof if the end comes first; limit_exceeded.
  std::span<const std::byte> exactly(std::size_t size) { return buffer_.exactly(size); }

  /// Waits until at least `size` bytes have arrived, or the end.
  /// Returns: all bytes read ahead, perhaps more than `size`; fewer only at the end. They are not
  ///          consumed. peek(0) does not wait.
  /// Switchpoint.
  /// Throws: limit_exceeded.
  std::span<const std::byte> peek(std::size_t size = 1) { return buffer_.peek(size); }

  /// Drops the next `size` bytes, however many.
  /// Switchpoint.
  /// Throws: unexpected_eof if the stream ends first; then the bytes before its end have been
  ///         dropped, and so have those that an interrupted skip() has read.
  void skip(std::size_t size) { buffer_.skip(size); }

  /// Reads at most `buffer.size()` bytes: those read ahead, else those of the stream, which then go
  /// directly to `buffer`.
  /// Returns: bytes read, in [0, buffer.size()]; 0 at the end, and immediately for an empty buffer.
  /// Switchpoint.
  std::size_t read(std::span<std::byte> buffer) { return buffer_.read(buffer); }
  std::size_t read(std::span<std::byte> buffer, std::error_code& error) noexcept {
    return buffer_.read(buffer, error);
  }

 private:
  class line_range {
   public:
    explicit line_range(detail::read_buffer& source) noexcept : source_(&source) {}

    class iterator {
     public:
      using value_type = std::string_view;
      using difference_type = std::ptrdiff_t;

      explicit iterator(detail::read_buffer& source) : source_(&source) { ++*this; }
      std::string_view operator*() const noexcept { return *line_; }
      iterator& operator++() {
        line_ = source_->line(source_->limit());
        return *this;
      }
      void operator++(int) { ++*this; }
      bool operator==(std::default_sentinel_t) const noexcept { return !line_.has_value(); }

     private:
      detail::read_buffer* source_;
      std::optional<std::string_view> line_;
    };

    iterator begin() const { return iterator(*source_); }
    std::default_sentinel_t end() const noexcept { return {}; }

   private:
    detail::read_buffer* source_;
  };

  detail::read_buffer buffer_;
};

}}  // namespace motet::MOTET_ABI
