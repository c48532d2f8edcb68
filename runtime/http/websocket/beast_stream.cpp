// SPDX-License-Identifier: MIT
// See http/websocket/beast_stream.hpp.
#include "http/websocket/beast_stream.hpp"

#include <algorithm>
#include <motet/base/errors.hpp>
#include <motet/cancellation/cancel.hpp>
#include <random>
#include <system_error>

#include "http/send.hpp"
#include "io/net/socket_calls.hpp"

namespace motet { inline namespace MOTET_ABI { namespace http {

namespace {

/// The size up to which parts are gathered before sending; longer parts are not copied.
constexpr std::size_t most_gathered = std::size_t{16} * 1024;

/// Returns: what a client says, with a mask, or a server. Source: RFC 6455, 5.2 and 5.5.1.
std::string close_frame(std::uint16_t code, bool by_client) {
  std::string frame = by_client ? "\x88\x82" : "\x88\x02";
  const std::uint32_t mask = by_client ? std::random_device()() : 0;
  const auto add = [&](std::uint32_t byte) { frame += static_cast<char>(byte & 0xff); };
  if (by_client) {
    for (const int shift : {24, 16, 8, 0}) add(mask >> shift);
  }
  for (const int shift : {8, 0}) add(std::uint32_t{code} >> shift ^ mask >> (shift + 16));
  return frame;
}

}  // namespace

std::size_t beast_stream::read(std::span<std::byte> buffer) {
  if (make_beginning_) beginning_ = std::exchange(make_beginning_, nullptr)();
  if (!beginning_.empty()) return take_beginning(buffer);
  unsent_pong_.reset();
  was_interrupted_ = true;  // unless this returns
  try {
    const std::size_t size = await(buffer);
    was_interrupted_ = false;
    if (size == 0) lose();
    return size;
  } catch (const std::system_error&) {
    lose();
    throw;
  }
}

std::size_t beast_stream::take_beginning(std::span<std::byte> buffer) {
  const std::size_t size = std::min(buffer.size(), beginning_.size());
  std::copy_n(std::as_bytes(std::span(beginning_)).begin(), size, buffer.begin());
  beginning_.erase(0, size);
  return size;
}

/// Sends a ping to a silent peer. Throws: timed_out if it does not respond.
std::size_t beast_stream::await(std::span<std::byte> buffer) {
  for (bool asked = false;; asked = true) {
    std::size_t size = 0;
    if (move_on_after(idle_, [&] { size = input_.read(buffer); })) return size;
    if (asked) throw timed_out(call_site::here());
    ask_();
  }
}

void beast_stream::check_whole() const {
  if (!is_broken_) return;
  throw std::system_error(std::make_error_code(std::errc::broken_pipe),
                          "a WebSocket of which a message was cut");
}

void beast_stream::add(std::span<const std::byte> bytes) {
  if (buffer_.size() + bytes.size() <= most_gathered) {
    buffer_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return;
  }
  send_gathered();
  send(bytes);
}

void beast_stream::send_gathered() {
  send(std::as_bytes(std::span(buffer_)));
  buffer_.clear();
}

void beast_stream::send(std::span<const std::byte> bytes) {
  std::span<const std::byte> rest = bytes;
  try {
    send_rest(stream_.output(), rest, stall_);
    bytes_sent_ += bytes.size();
  } catch (const std::system_error&) {
    is_broken_ = true;
    lose();
    throw;
  } catch (...) {
    bytes_sent_ += bytes.size() - rest.size();
    throw;
  }
}

void beast_stream::refuse(std::uint16_t code) {
  const std::string frame = close_frame(code, answer_ == nullptr);
  error_code error;
  write_some(boost::asio::buffer(frame), error);
  hang_up();
}

void beast_stream::hang_up() {
  const std::lock_guard lock(write_mutex_);
  has_hung_up_ = true;
  if (answer_ == nullptr) return;
  try {
    move_on_after(stall_, [this] {
      stream_.shutdown(SHUT_WR);  // which for TLS sends an alert only
      detail::sockets::shutdown(stream_.native_handle(), SHUT_WR);
    });
  } catch (const std::system_error&) {  // the client has disconnected
  }
}

void beast_stream::note_cut(std::uint64_t old_count) noexcept {
  is_broken_ = is_broken_ || bytes_sent_ != old_count;
  buffer_.clear();
  if (is_broken_) detail::sockets::shutdown(stream_.native_handle(), SHUT_RDWR);
}

}}}  // namespace motet::MOTET_ABI::http
