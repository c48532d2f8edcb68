// SPDX-License-Identifier: MIT
// The buffer of a reader: bytes that were read ahead and not consumed yet.
#pragma once

#include <cstddef>
#include <motet/detail/base/owned.hpp>
#include <motet/detail/io/stream_direction.hpp>
#include <motet/detail/io/stream_queue.hpp>
#include <optional>
#include <span>
#include <string_view>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class read_buffer {
 public:
  read_buffer(const stream_direction& source, std::size_t limit);
  read_buffer(const read_buffer&) = delete;
  read_buffer& operator=(const read_buffer&) = delete;
  ~read_buffer();

  std::size_t limit() const noexcept { return limit_; }
  std::optional<std::string_view> until(std::string_view delimiter, std::size_t limit);
  std::optional<std::string_view> line(std::size_t limit);
  std::span<const std::byte> exactly(std::size_t size);
  std::span<const std::byte> peek(std::size_t size);
  void skip(std::size_t size);
  std::size_t read(std::span<std::byte> buffer);
  std::size_t read(std::span<std::byte> buffer, std::error_code& error) noexcept;

 private:
  class turn;

  std::string_view held() const noexcept {
    return {reinterpret_cast<const char*>(bytes_.get()) + begin_, end_ - begin_};
  }
  bool fill(std::size_t size);
  std::size_t read_stream(std::span<std::byte> buffer, std::error_code& error) noexcept;
  void make_space(std::size_t size);
  void grow();
  std::string_view take(std::size_t size, std::size_t skip);
  std::optional<std::size_t> find(std::string_view delimiter, std::size_t offset,
                                  std::size_t limit);

  const stream_direction source_;
  const std::size_t limit_;
  owned<std::byte[]> bytes_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;  // of the unread bytes
  std::size_t end_ = 0;
  stream_queue order_;
};

}}}  // namespace motet::MOTET_ABI::detail
