// SPDX-License-Identifier: MIT
// The body of a message that is coming.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <motet/base/clock.hpp>
#include <motet/detail/io/read_buffer.hpp>
#include <span>

#include "http/parser.hpp"

namespace motet { inline namespace MOTET_ABI { namespace http {

class body_reader {
 public:
  body_reader(detail::read_buffer& source, message_parser& chunks) noexcept
      : source_(source), chunks_(chunks) {}

  /// Starts the body of `head`, which may have `size_limit` bytes and pauses of up to `stall`.
  void begin(const message_head& head, std::uint64_t size_limit, clock::duration stall) noexcept;
  /// Starts an empty body, whatever the head promises.
  void begin_none() noexcept { kind_ = kind::none; }
  /// It ends where the connection does.
  void begin_to_end(std::uint64_t size_limit, clock::duration stall) noexcept;
  bool ended() const noexcept { return kind_ == kind::none; }
  bool begun() const noexcept { return begun_; }
  /// Whether the connection ended, or failed, before the body did.
  bool lost() const noexcept { return lost_; }

  /// Returns: bytes read; 0 at the end.
  /// Throws: status_error; unexpected_eof; std::system_error; a pending interruption.
  std::size_t read(std::span<std::byte> buffer);
  /// Discards the rest if it has at most `size_limit` bytes and arrives within `limit`.
  /// Returns: whether all of it was discarded.
  bool skip(std::uint64_t size_limit, clock::duration limit);
  /// Whether skip() may succeed: false if reading has failed, or more than `size_limit` bytes are
  /// left.
  bool can_skip(std::uint64_t size_limit) const noexcept {
    return !failed_ && !lost_ && remaining_ <= size_limit;
  }
  /// Whether its length is known and above the limit.
  bool is_too_large() const noexcept { return remaining_ > may_come_; }
  /// Whether reading it has failed: it cannot be read any further.
  bool failed() const noexcept { return failed_; }

 private:
  enum class kind { none, of_length, chunked, to_end };

  std::size_t read_piece(std::span<std::byte> buffer);
  std::size_t read_some(std::span<std::byte> buffer);
  std::size_t read_to_end(std::span<std::byte> buffer);
  std::size_t read_stream(std::span<std::byte> buffer);
  std::size_t read_chunk(std::span<std::byte> buffer);
  void await_more(std::size_t minimum);
  void count(std::size_t size);

  detail::read_buffer& source_;
  message_parser& chunks_;
  kind kind_ = kind::none;
  bool begun_ = false;
  bool lost_ = false;
  bool failed_ = false;
  std::uint64_t remaining_ = 0;  // of a known length
  std::uint64_t may_come_ = 0;
  clock::duration stall_{};
};

}}}  // namespace motet::MOTET_ABI::http
