// SPDX-License-Identifier: MIT
// What Boost.Beast's WebSocket reads and writes through: a stream of motet's.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/beast/core/role.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <motet/base/clock.hpp>
#include <motet/detail/io/any_stream.hpp>
#include <motet/detail/io/read_buffer.hpp>
#include <motet/sync/recursive_mutex.hpp>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "http/server/response_writer.hpp"

namespace motet { inline namespace MOTET_ABI { namespace http {

/// A SyncStream of Boost.Beast. What a read or a write of the stream throws goes through
/// Boost.Beast, which must then read before it says anything else: see was_interrupted().
class beast_stream {
 public:
  using executor_type = boost::asio::io_context::executor_type;
  using error_code = boost::system::error_code;

  /// `answer`: on a server, the writer that is notified of a lost client; else null.
  beast_stream(detail::read_buffer& input, detail::any_stream& stream, clock::duration stall,
               response_writer* answer) noexcept
      : input_(input), stream_(stream), stall_(stall), answer_(answer) {}

  /// Starts to call `ask()` when the peer has been silent for `idle`; after as long again without a
  /// byte, the connection counts as lost.
  void set_idle_check(clock::duration idle, std::function<void()> ask) {
    idle_ = idle;
    ask_ = std::move(ask);
  }

  /// Boost.Beast makes a timer for calls that motet does not make, and a timer needs a context. No
  /// thread ever runs this one; it is never destroyed, as threads may outlive main().
  executor_type get_executor() noexcept {
    static boost::asio::io_context& context = *new boost::asio::io_context;
    return context.get_executor();
  }

  template <typename Buffers>
  std::size_t read_some(const Buffers& buffers, error_code& error) {
    for (auto position = boost::asio::buffer_sequence_begin(buffers);
         position != boost::asio::buffer_sequence_end(buffers); ++position) {
      const boost::asio::mutable_buffer part = *position;
      if (part.size() == 0) continue;
      const std::size_t size = read({static_cast<std::byte*>(part.data()), part.size()});
      error = size == 0 ? error_code(boost::asio::error::eof) : error_code();
      return size;
    }
    error = {};
    return 0;
  }
  template <typename Buffers>
  std::size_t write_some(const Buffers& bytes, error_code& error) {
    const std::lock_guard lock(write_mutex_);
    error = {};
    if (has_hung_up_) return boost::asio::buffer_size(bytes);
    check_whole();
    const std::uint64_t old_count = bytes_sent_;
    try {
      for (auto position = boost::asio::buffer_sequence_begin(bytes);
           position != boost::asio::buffer_sequence_end(bytes); ++position) {
        const boost::asio::const_buffer part = *position;
        add({static_cast<const std::byte*>(part.data()), part.size()});
      }
      send_gathered();
    } catch (...) {
      note_cut(old_count);
      throw;
    }
    return static_cast<std::size_t>(bytes_sent_ - old_count);
  }
  template <typename Buffers>
  std::size_t read_some(const Buffers& buffers) {
    error_code error;
    const std::size_t size = read_some(buffers, error);
    if (error) throw boost::system::system_error(error);
    return size;
  }
  template <typename Buffers>
  std::size_t write_some(const Buffers& bytes) {
    error_code error;
    return write_some(bytes, error);
  }

  /// Held from the first byte of a message to its last, so that no reply to a ping comes between
  /// them. Recursive.
  local::recursive_mutex& writing() noexcept { return write_mutex_; }
  /// How many bytes were sent.
  std::uint64_t sent() const noexcept { return bytes_sent_; }
  /// A frame that began when `old_count` bytes were sent goes no further; if a part of it was sent,
  /// nothing can follow, and a read ends.
  void note_cut(std::uint64_t old_count) noexcept;
  /// The pong that Boost.Beast is about to send. If an interruption ends the read before, it is
  /// sent by the next one; only the last ping needs one. Source: RFC 6455, 5.5.3.
  std::optional<boost::beast::websocket::ping_data>& unsent_pong() noexcept { return unsent_pong_; }
  /// Whether part of a frame was sent, and the rest was not.
  bool broken() const noexcept { return is_broken_; }
  /// Whether the last read was interrupted, and none has begun since. Boost.Beast's error is wrong
  /// then: it has seen half a frame, and takes it for the end of the message.
  bool was_interrupted() const noexcept { return was_interrupted_; }
  /// Tells the peer by a Close frame that it has broken a rule, and hangs up. Boost.Beast does so
  /// for the rules that it checks itself.
  void refuse(std::uint16_t code);
  /// Stops sending. A server also shuts down its direction of the stream, which the client waits
  /// for; both can still read. Source: RFC 6455, 7.1.1.
  void hang_up();
  /// The client has disconnected: an exception of the handler is not its failure from now on.
  void lose() noexcept {
    if (answer_ != nullptr) answer_->lose();
  }
  /// The client has broken the rules: the same.
  void set_client_error() noexcept {
    if (answer_ != nullptr) answer_->set_client_error();
  }
  /// The first read gets what this returns, instead of what comes.
  void begin_with(std::function<std::string()> make) { make_beginning_ = std::move(make); }

 private:
  std::size_t read(std::span<std::byte> buffer);
  std::size_t take_beginning(std::span<std::byte> buffer);
  std::size_t await(std::span<std::byte> buffer);
  void check_whole() const;
  void add(std::span<const std::byte> bytes);
  void send_gathered();
  void send(std::span<const std::byte> bytes);

  detail::read_buffer& input_;
  detail::any_stream& stream_;
  const clock::duration stall_;
  response_writer* const answer_;
  local::recursive_mutex write_mutex_;
  std::string buffer_;
  std::optional<boost::beast::websocket::ping_data> unsent_pong_;
  std::function<std::string()> make_beginning_;
  std::string beginning_;  // the rest of it
  clock::duration idle_ = clock::duration::max();
  std::function<void()> ask_;
  std::uint64_t bytes_sent_ = 0;
  bool is_broken_ = false;
  bool was_interrupted_ = false;
  bool has_hung_up_ = false;
};

/// What Boost.Beast calls when a WebSocket has ended. Whoever owns the stream closes it.
inline void teardown(boost::beast::role_type, beast_stream& stream,
                     boost::system::error_code& error) {
  error = {};
  stream.hang_up();
}
inline void beast_close_socket(beast_stream&) noexcept {}

}}}  // namespace motet::MOTET_ABI::http
