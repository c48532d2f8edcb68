// SPDX-License-Identifier: MIT
// See http/server/response_writer.hpp.
#include "http/server/response_writer.hpp"

#include <stdexcept>
#include <string>

#include "http/fields_access.hpp"
#include "http/lists.hpp"
#include "http/reason_phrase.hpp"
#include "http/send.hpp"
#include "http/server/date.hpp"
#include "http/server/send_range.hpp"
#include "http/text.hpp"

namespace motet { inline namespace MOTET_ABI { namespace http {

namespace {

/// What is gathered before it is sent, and before a body whose length is not known goes in chunks.
constexpr std::size_t most_gathered = std::size_t{16} * 1024;

[[noreturn]] void throw_too_long() {
  throw std::logic_error("response: the body is longer than its Content-Length");
}

}  // namespace

void response_writer::begin(bool to_head, bool is_1_1, bool keep_alive) noexcept {
  status = 200;
  headers.clear();
  body_.clear();
  length_.reset();
  bytes_written_ = 0;
  to_head_ = to_head;
  is_1_1_ = is_1_1;
  framing_ = framing::none;
  if (progress_ != progress::cut) progress_ = progress::open;
  afterwards_ = keep_alive ? afterwards::keep_alive : afterwards::close;
}

void response_writer::cut() noexcept {
  progress_ = progress::cut;
  output_.clear();
}

void response_writer::hand_over() {
  if (begun()) throw std::logic_error("response: the header section has already been sent");
  send();
  status = 101;
  afterwards_ = afterwards::handed_over;
  cut();
}

void response_writer::drop_body() {
  for (const char* of_body : {"content-length", "content-encoding", "content-range", "etag"}) {
    headers.remove(of_body);
  }
  body_.clear();
  length_.reset();
  bytes_written_ = 0;
}

void response_writer::forget() noexcept {
  headers.clear();
  body_.clear();
  length_.reset();
  bytes_written_ = 0;
}

/// Takes the length that the handler has set.
void response_writer::check_headers() {
  if (headers.find("transfer-encoding").has_value()) {
    throw std::invalid_argument("response: a handler must not set Transfer-Encoding");
  }
  if (!headers.find("content-length").has_value()) return;
  length_ = number_of(only_value(headers, "content-length").value_or(""));
  if (!length_.has_value()) {
    throw std::invalid_argument("response: Content-Length is not a number, or occurs twice");
  }
  if (bytes_written_ > *length_) throw_too_long();
  if (!has_body() && status != 304) headers.remove("content-length");
}

/// A client of HTTP/1.0 knows no chunks: a body without a length ends with the connection.
void response_writer::choose_framing(std::optional<std::uint64_t> length) noexcept {
  if (!has_body()) {
    framing_ = framing::none;
  } else if (length_.has_value() || length.has_value()) {
    framing_ = framing::length;
  } else {
    framing_ = is_1_1_ ? framing::chunked : framing::to_close;
  }
  if (framing_ == framing::to_close) close_after();
}

void response_writer::append_head(bool says_close) {
  output_.append("HTTP/1.1 ");
  append_number(output_, static_cast<std::uint64_t>(status));
  output_.append(" ").append(reason_phrase(status)).append("\r\n");
  if (!headers.find("date").has_value()) {
    output_.append("Date: ").append(date_of_now()).append("\r\n");
  }
  fields_access::append(headers, output_);
  if (framing_ == framing::length && !length_.has_value()) {
    output_.append("Content-Length: ");
    append_number(output_, bytes_written_);
    output_.append("\r\n");
  }
  if (framing_ == framing::chunked) output_.append("Transfer-Encoding: chunked\r\n");
  if (status == 205) output_.append("Content-Length: 0\r\n");
  if (!keeps_alive()) {
    if (!says_close) output_.append("Connection: close\r\n");
  } else if (!is_1_1_) {
    output_.append("Connection: keep-alive\r\n");
  }
  output_.append("\r\n");
}

/// `length` is that of the body if it is whole.
void response_writer::add_head(std::optional<std::uint64_t> length) {
  check_headers();
  const bool says_close = has_member(headers, "connection", "close");
  if (says_close) close_after();
  progress_ = progress::begun;
  choose_framing(length);
  if (!has_body()) body_.clear();  // which was written before the status was set
  append_head(says_close);
}

void response_writer::write(std::span<const std::byte> bytes) {
  if (!has_body() || bytes.empty()) return;
  if (broken()) throw std::system_error(std::make_error_code(std::errc::broken_pipe), "write");
  bytes_written_ += bytes.size();
  if (length_.has_value() && bytes_written_ > *length_) {
    cut();
    throw_too_long();
  }
  if (to_head_) return;
  if (body_.size() + bytes.size() <= most_gathered) {
    body_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return;
  }
  frame(bytes);
}

/// Sends the buffered bytes and `bytes`, which is not copied.
void response_writer::frame(std::span<const std::byte> bytes) {
  if (!begun()) add_head(std::nullopt);
  const std::size_t size = body_.size() + bytes.size();
  if (framing_ == framing::chunked && size > 0) add_chunk_size(size);
  output_.append(body_);
  body_.clear();
  if (!bytes.empty()) {
    send();
    send(bytes);
  }
  if (framing_ == framing::chunked && size > 0) output_.append("\r\n");
}

void response_writer::add_chunk_size(std::size_t size) {
  append_number(output_, size, 16);
  output_.append("\r\n");
}

void response_writer::flush() {
  frame({});
  send();
}

std::uint64_t response_writer::send_part(int file, off_t begin, std::uint64_t size) {
  flush();
  if (framing_ == framing::chunked || to_head_ || !length_.has_value() ||
      bytes_written_ + size > *length_)
    return 0;
  is_lost_ = true;
  const std::uint64_t count = send_cached(target_, file, begin, size, stall_);
  is_lost_ = false;
  bytes_written_ += count;
  return count;
}

/// Throws: std::logic_error if the handler has written less than its Content-Length; a client that
///         waits for the rest would take the next answer for it, so what has begun is cut.
void response_writer::check_length() {
  const auto length_text = begun() ? std::nullopt : headers.find("content-length");
  const std::optional<std::uint64_t> length = length_text ? number_of(*length_text) : length_;
  if (to_head_ || !has_body() || !length.has_value() || bytes_written_ >= *length) return;
  if (begun()) cut();
  throw std::logic_error("response: the body has " + std::to_string(bytes_written_) +
                         " bytes, fewer than its Content-Length of " + std::to_string(*length));
}

void response_writer::finish() {
  check_length();
  if (!begun()) {
    add_head(bytes_written_);
    output_.append(body_);
    body_.clear();
  } else {
    frame({});
    if (framing_ == framing::chunked && !to_head_) output_.append("0\r\n\r\n");
  }
  if (output_.size() > most_gathered) send();
}

void response_writer::send() {
  send(std::as_bytes(std::span(output_)));
  output_.clear();
}

/// Whatever interrupts this leaves part of an answer, behind which nothing can be sent.
void response_writer::send(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  is_lost_ = true;
  send_all(target_, bytes, stall_);
  is_lost_ = false;
}

void response_writer::ask_to_continue() {
  output_.append("HTTP/1.1 100 Continue\r\n\r\n");
  send();
}

}}}  // namespace motet::MOTET_ABI::http
