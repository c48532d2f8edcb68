// SPDX-License-Identifier: MIT
// See http/body_reader.hpp.
#include "http/body_reader.hpp"

#include <algorithm>
#include <array>
#include <motet/base/errors.hpp>
#include <motet/cancellation/cancel.hpp>
#include <motet/http/request.hpp>
#include <string_view>

#include "http/reason_phrase.hpp"
#include "http/text.hpp"

namespace motet { inline namespace MOTET_ABI { namespace http {

namespace {

/// The longest chunk-size line, and the longest trailer.
constexpr std::size_t longest_line = std::size_t{4} * 1024;

}  // namespace

void body_reader::begin(const message_head& head, std::uint64_t size_limit,
                        clock::duration stall) noexcept {
  remaining_ = head.length.value_or(0);
  kind_ = head.chunked ? kind::chunked : remaining_ > 0 ? kind::of_length : kind::none;
  begun_ = lost_ = failed_ = false;
  may_come_ = size_limit;
  stall_ = stall;
}

void body_reader::begin_to_end(std::uint64_t size_limit, clock::duration stall) noexcept {
  kind_ = kind::to_end;
  begun_ = lost_ = failed_ = false;
  may_come_ = size_limit;
  stall_ = stall;
}

std::size_t body_reader::read(std::span<std::byte> buffer) {
  if (buffer.empty()) return 0;
  begun_ = true;
  try {
    return read_piece(buffer);
  } catch (const status_error&) {
    failed_ = true;
    throw;
  } catch (const unexpected_eof&) {
    lost_ = true;
    throw;
  } catch (const std::system_error&) {
    lost_ = true;
    throw;
  }
}

std::size_t body_reader::read_piece(std::span<std::byte> buffer) {
  switch (kind_) {
    case kind::none:
      return 0;
    case kind::of_length:
      return read_some(buffer);
    case kind::chunked:
      return read_chunk(buffer);
    case kind::to_end:
      return read_to_end(buffer);
  }
  return 0;
}

std::size_t body_reader::read_some(std::span<std::byte> buffer) {
  if (remaining_ > may_come_) throw standard_error(413);
  buffer =
      buffer.first(static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), remaining_)));
  const std::size_t size = read_stream(buffer);
  if (size == 0) throw unexpected_eof(0, static_cast<std::size_t>(remaining_));
  count(size);
  remaining_ -= size;
  if (remaining_ == 0) kind_ = kind::none;
  return size;
}

std::size_t body_reader::read_to_end(std::span<std::byte> buffer) {
  const std::size_t size = read_stream(buffer);
  count(size);
  if (size == 0) kind_ = kind::none;
  return size;
}

std::size_t body_reader::read_stream(std::span<std::byte> buffer) {
  std::size_t size = 0;
  if (!source_.peek(0).empty()) {
    size = source_.read(buffer);
  } else if (!move_on_after(stall_, [&] { size = source_.read(buffer); })) {
    throw standard_error(408);
  }
  return size;
}

std::size_t body_reader::read_chunk(std::span<std::byte> buffer) {
  for (;;) {
    const std::string_view text = text_of(source_.peek(0));
    if (text.empty()) {
      await_more(1);
      continue;
    }
    const message_parser::step next = chunks_.next_piece(text, buffer.size());
    const std::size_t remaining = text.size() - next.size;
    // Framing that has arrived whole counts, too; otherwise the limit would depend on the
    // segmentation.
    const std::size_t framing = next.size - next.piece.size() + (next.needs_more ? remaining : 0);
    if (next.bad || framing > std::min(longest_line, source_.limit() - 1)) {
      throw standard_error(400);
    }
    std::copy_n(std::as_bytes(std::span(next.piece)).begin(), next.piece.size(), buffer.begin());
    source_.skip(next.size);
    if (next.done) kind_ = kind::none;
    count(next.piece.size());
    if (next.done || !next.piece.empty()) return next.piece.size();
    if (next.needs_more) await_more(remaining + 1);
  }
}

/// Waits until `minimum` bytes are there.
void body_reader::await_more(std::size_t minimum) {
  std::size_t size = 0;
  if (!move_on_after(stall_, [&] { size = source_.peek(minimum).size(); })) {
    throw standard_error(408);
  }
  if (size < minimum) throw unexpected_eof(size, minimum);
}

void body_reader::count(std::size_t size) {
  if (size > may_come_) throw standard_error(413);
  may_come_ -= size;
}

bool body_reader::skip(std::uint64_t size_limit, clock::duration limit) {
  if (ended() || !can_skip(size_limit)) return ended();
  may_come_ = size_limit;
  try {
    move_on_after(limit, [&] {
      std::array<std::byte, 4096> scratch;
      while (read(scratch) > 0) continue;
    });
  } catch (const status_error&) {
  } catch (const unexpected_eof&) {
  } catch (const std::system_error&) {
  }
  return ended();
}

}}}  // namespace motet::MOTET_ABI::http
