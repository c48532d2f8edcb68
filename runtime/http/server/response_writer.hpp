// SPDX-License-Identifier: MIT
// Answers on their way: gathered, framed and sent.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <motet/base/clock.hpp>
#include <motet/detail/io/stream_direction.hpp>
#include <motet/http/fields.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace motet { inline namespace MOTET_ABI { namespace http {

class response_writer {
 public:
  response_writer(const detail::stream_direction& target, clock::duration stall) noexcept
      : target_(target), stall_(stall) {}

  /// The answer to the next request begins, perhaps one to HEAD; `keep_alive`: the client waits for
  /// others on the same connection.
  void begin(bool to_head, bool is_1_1, bool keep_alive) noexcept;

  int status = 200;
  fields headers;
  /// No request is answered after this one.
  void close_after() noexcept {
    if (afterwards_ == afterwards::keep_alive) afterwards_ = afterwards::close;
  }
  bool keeps_alive() const noexcept { return afterwards_ == afterwards::keep_alive; }
  bool begun() const noexcept { return progress_ != progress::open; }
  /// Whether no more can be sent: the response was aborted, or the stream has failed or stalled.
  bool broken() const noexcept { return progress_ == progress::cut || is_lost_; }
  bool lost() const noexcept { return is_lost_; }
  /// How many bytes the body has had.
  std::uint64_t written() const noexcept { return bytes_written_; }
  /// Aborts this response so that the client sees a truncated message. Earlier ones are sent.
  void cut() noexcept;
  /// Sends the answers before this one. From now on others use the stream.
  /// Throws: std::logic_error if the answer has begun.
  void hand_over();
  bool handed_over() const noexcept { return afterwards_ == afterwards::handed_over; }
  /// Called by the owner of a handed-over stream when its client has disconnected.
  void lose() noexcept { is_lost_ = true; }
  /// What the handler throws now is the client's fault.
  void set_client_error() noexcept { is_client_error_ = true; }
  bool is_client_error() const noexcept { return is_client_error_; }
  /// Drops what has been written of an answer that has not begun; and its headers.
  void drop_body();
  void forget() noexcept;

  // These throw as response::write() does.
  void write(std::span<const std::byte> bytes);
  /// Sends what has been written.
  void flush();
  /// Sends a part of a file behind that, as far as the kernel can by itself, if the length of the
  /// body was said.
  /// Returns: how many bytes were sent.
  std::uint64_t send_part(int file, off_t begin, std::uint64_t size);
  /// The answer is whole; it may be sent later.
  /// Throws: std::logic_error if it is not.
  void finish();
  /// Sends what is whole.
  void send();
  /// Sends "100 Continue". Source: RFC 9110, 10.1.1.
  void ask_to_continue();

 private:
  /// Of the body.
  enum class framing : std::uint8_t { none, length, chunked, to_close };
  /// Of this response; one that was cut is the last on its connection.
  enum class progress : std::uint8_t { open, begun, cut };
  /// What becomes of the connection.
  enum class afterwards : std::uint8_t { keep_alive, close, handed_over };

  bool has_body() const noexcept {
    return status >= 200 && status != 204 && status != 205 && status != 304;
  }
  void add_head(std::optional<std::uint64_t> length);
  void check_headers();
  void choose_framing(std::optional<std::uint64_t> length) noexcept;
  void append_head(bool says_close);
  void frame(std::span<const std::byte> bytes);
  void add_chunk_size(std::size_t size);
  void check_length();
  void send(std::span<const std::byte> bytes);

  const detail::stream_direction target_;
  const clock::duration stall_;
  std::string output_;                   // framed
  std::string body_;                     // not framed yet
  std::optional<std::uint64_t> length_;  // by the handler's Content-Length
  std::uint64_t bytes_written_ = 0;
  framing framing_ = framing::none;
  progress progress_ = progress::open;
  afterwards afterwards_ = afterwards::keep_alive;
  bool to_head_ = false;
  bool is_1_1_ = true;
  bool is_lost_ = false;
  bool is_client_error_ = false;
};

}}}  // namespace motet::MOTET_ABI::http
