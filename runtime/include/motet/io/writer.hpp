// SPDX-License-Identifier: MIT
// Small writes, gathered.
#pragma once

#include <cstddef>
#include <motet/base/call_site.hpp>
#include <motet/detail/io/write_buffer.hpp>
#include <motet/io/stream.hpp>
#include <span>
#include <string_view>

namespace motet { inline namespace MOTET_ABI {

/// Buffers small writes, and writes them to a stream in few calls: when `capacity` bytes have
/// accumulated, when the fiber waits for anything or snoozes, at flush(), and at its own end. So an
/// answer in many parts is one packet, and a request is sent before its response is awaited.
///
/// The stream must outlive the writer and must not be moved. From the first byte until all are
/// written the writer holds the stream's turn to write: direct writes to the stream, by this or
/// other fibers, come after it. (A file has no turns: flush() first.) Nor does shutdown() wait:
/// flush() first. A forked child has a copy of the buffer, and writes it as well: flush() first. To
/// be used on one thread, and destroyed by the fiber that created it.
template <stream Stream>
class writer {
 public:
  /// Not a switchpoint.
  /// Throws: std::invalid_argument for a capacity of 0; std::bad_alloc.
  explicit writer(Stream& destination, std::size_t capacity = std::size_t{16} * 1024,
                  call_site site = call_site::here())
      : buffer_(detail::output_of(destination), capacity, site) {}
  /// Writes the buffered bytes, unless an exception unwinds the stack: then they may be lost. An
  /// interruption ends the wait, and stays pending. Only flush() reports a failure.
  /// Switchpoint.
  ~writer() = default;

  /// Switchpoint.
  /// Throws: std::system_error, even for earlier writes; every later call throws it, too. A pending
  ///         interruption: if `bytes` is no larger than `capacity`, none of it has been written
  ///         then; if it is larger, a part may have been written.
  void write(std::span<const std::byte> bytes) { buffer_.write(bytes); }
  void write(std::string_view text) { buffer_.write_text(text); }

  /// Waits until the kernel has accepted all written bytes.
  /// Switchpoint.
  /// Throws: std::system_error;
  ///         a pending interruption, and then the rest is still buffered.
  void flush() { buffer_.flush(); }

  /// Returns: the number of buffered bytes.
  /// Not a switchpoint.
  std::size_t buffered() const noexcept { return buffer_.buffered(); }

 private:
  detail::write_buffer buffer_;
};

}}  // namespace motet::MOTET_ABI
