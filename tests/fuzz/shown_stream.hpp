// SPDX-License-Identifier: MIT
// A stream for a server to own, that is looked at when it has been served.
#pragma once

#include <cstddef>
#include <span>
#include <system_error>

#include "io/scripted_stream.hpp"

namespace fuzz {

struct shown_stream {
  std::size_t read(std::span<std::byte> room) { return stream->read(room); }
  std::size_t read(std::span<std::byte> room, std::error_code& error) noexcept {
    return stream->read(room, error);
  }
  std::size_t write(std::span<const std::byte> bytes, std::error_code& error) noexcept {
    return stream->write(bytes, error);
  }
  void write_all(std::span<const std::byte> bytes) { stream->write_all(bytes); }
  void shutdown(int direction) { stream->shutdown(direction); }
  testing::scripted_stream* stream;
};

}  // namespace fuzz
