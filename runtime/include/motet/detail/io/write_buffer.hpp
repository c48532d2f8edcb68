// SPDX-License-Identifier: MIT
// What a writer keeps for its stream: bytes that have not been written yet, and the turn to write.
#pragma once

#include <cstddef>
#include <motet/base/call_site.hpp>
#include <motet/detail/base/owned.hpp>
#include <motet/detail/io/stream_direction.hpp>
#include <motet/fibers/group.hpp>
#include <motet/sync/mutex.hpp>
#include <span>
#include <string_view>
#include <system_error>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class write_buffer {
 public:
  write_buffer(const stream_direction& destination, std::size_t capacity, call_site site);
  write_buffer(const write_buffer&) = delete;
  write_buffer& operator=(const write_buffer&) = delete;
  ~write_buffer();

  void write(std::span<const std::byte> bytes);
  void write_text(std::string_view text);
  void flush();
  std::size_t buffered() const noexcept { return input_.size() + outgoing_.size(); }

 private:
  /// Bytes, some of which, at the front, have been written.
  struct part {
    owned<std::byte[]> bytes;
    std::size_t begin = 0;
    std::size_t end = 0;

    std::size_t size() const noexcept { return end - begin; }
  };

  class flusher;

  void check_failure() const;
  std::error_code acquire_turn() noexcept;
  bool begin();
  void flush_gathered();
  void flush_alone() noexcept;
  bool flush_later() noexcept;
  void flush_in_fiber();
  void give_up_flush() noexcept;
  std::error_code send(std::span<const std::byte>& bytes) noexcept;
  std::error_code send_all() noexcept;
  void fail(const std::error_code& error) noexcept;
  void settle(const std::error_code& error);
  void end_unless_more() noexcept;

  const stream_direction destination_;
  const std::size_t capacity_;
  const call_site site_;
  const int exceptions_;
  part input_;
  part outgoing_;
  direction_lock turn_;        // from the first byte until all are written
  std::error_code failure_;    // of the stream: it accepts no more bytes
  bool flush_is_due_ = false;  // a fiber will flush when the others wait
  local::mutex calls_;         // the order of the fibers that write
  local::mutex sends_;         // only one sends at a time
  group flushers_;
};

}}}  // namespace motet::MOTET_ABI::detail
