// SPDX-License-Identifier: MIT
// See http/websocket/link.hpp.
#include "http/websocket/link.hpp"

#include <algorithm>
#include <cstddef>
#include <system_error>

namespace motet { inline namespace MOTET_ABI { namespace http {

namespace {

/// What is put together before it is sent; longer parts are not copied.
constexpr std::size_t most_gathered = std::size_t{16} * 1024;

/// The length of "HTTP/1.1 403".
constexpr std::size_t most_of_beginning = 12;

}  // namespace

std::size_t link::read(std::span<std::byte> room) {
  try {
    const std::size_t size = in_.read(room);
    if (size == 0 && answer_ != nullptr) answer_->lose();
    const std::size_t wanted = std::min(size, most_of_beginning - beginning_.size());
    beginning_.append(reinterpret_cast<const char*>(room.data()), wanted);
    come_ += size;
    return size;
  } catch (const std::system_error&) {
    if (answer_ != nullptr) answer_->lose();
    throw;
  }
}

void link::add(std::span<const std::byte> bytes) {
  if (gathered_.size() + bytes.size() <= most_gathered) {
    gathered_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return;
  }
  send_gathered();
  send(bytes);
}

void link::send_gathered() {
  send(std::as_bytes(std::span(gathered_)));
  gathered_.clear();
}

void link::send(std::span<const std::byte> bytes) {
  std::span<const std::byte> left = bytes;
  try {
    send_rest(out_, left, stall_);
    sent_ += bytes.size();
  } catch (const std::system_error&) {
    is_broken_ = true;
    if (answer_ != nullptr) answer_->lose();
    throw;
  } catch (...) {
    sent_ += bytes.size() - left.size();
    throw;
  }
}

void link::note_cut(std::uint64_t before) noexcept {
  is_broken_ = is_broken_ || sent_ != before;
  gathered_.clear();
}

}}}  // namespace motet::MOTET_ABI::http
