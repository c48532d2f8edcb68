// SPDX-License-Identifier: MIT
// A stream that a test has written the lines of: what each read returns, and what was written.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace testing {

class scripted_stream {
 public:
  explicit scripted_stream(std::vector<std::string> parts = {})
      : parts_(parts.begin(), parts.end()) {
    std::erase(parts_, "");
  }

  /// The next call fails once.
  void fail_next(std::errc error) { failure_ = std::make_error_code(error); }
  /// A write takes at most so many bytes.
  void take_at_most(std::size_t bytes) { limit_ = bytes; }

  std::size_t read(std::span<std::byte> room) {
    std::error_code error;
    const std::size_t size = read(room, error);
    if (error) throw std::system_error(error);
    return size;
  }
  std::size_t read(std::span<std::byte> room, std::error_code& error) {
    largest_room = std::max(largest_room, room.size());
    error = std::exchange(failure_, {});
    if (error || parts_.empty()) return 0;
    std::string& part = parts_.front();
    const std::size_t size = std::min(room.size(), part.size());
    std::copy_n(std::as_bytes(std::span(part)).begin(), size, room.begin());
    part.erase(0, size);
    if (part.empty()) parts_.pop_front();
    return size;
  }
  std::size_t write(std::span<const std::byte> bytes, std::error_code& error) {
    error = std::exchange(failure_, {});
    if (error) return 0;
    const std::size_t size = std::min(bytes.size(), limit_);
    writes.emplace_back(reinterpret_cast<const char*>(bytes.data()), size);
    return size;
  }
  void write_all(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      std::error_code error;
      bytes = bytes.subspan(write(bytes, error));
      if (error) throw std::system_error(error);
    }
  }
  void shutdown(int) { ended = true; }

  /// Bytes that are still to be read.
  std::size_t left() const {
    std::size_t size = 0;
    for (const std::string& part : parts_) size += part.size();
    return size;
  }
  std::string written() const {
    std::string text;
    for (const std::string& part : writes) text += part;
    return text;
  }

  std::vector<std::string> writes;  // one for each call
  std::size_t largest_room = 0;     // that a read was given
  bool ended = false;

 private:
  std::deque<std::string> parts_;
  std::error_code failure_;
  std::size_t limit_ = static_cast<std::size_t>(-1);
};

}  // namespace testing
