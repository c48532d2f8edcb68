// SPDX-License-Identifier: MIT
// Copying a stream to another one, and connecting two streams in both directions.
#pragma once

#include <cstdint>
#include <motet/base/call_site.hpp>
#include <motet/detail/base/timespan.hpp>
#include <motet/detail/io/stream_direction.hpp>
#include <motet/io/stream.hpp>
#include <optional>

namespace motet { inline namespace MOTET_ABI {

/// How many bytes proxy() has read from one stream and written to the other.
struct proxied {
  std::uint64_t forth = 0;  // from the first stream to the second
  std::uint64_t back = 0;
};

namespace detail {

std::uint64_t copy(const stream_direction& source, const stream_direction& destination);

/// What proxy() needs of a stream.
struct joined_stream {
  stream_direction input;
  stream_direction output;
  void* stream;
  void (*end_writes)(void* stream);
};

template <typename Stream>
joined_stream joined(Stream& stream) {
  return {input_of(stream), output_of(stream), &stream,
          [](void* object) { static_cast<Stream*>(object)->shutdown(SHUT_WR); }};
}

/// Sets `bytes` even when it throws.
void proxy(const joined_stream& first, const joined_stream& second, std::optional<timespan> idle,
           proxied& bytes, call_site site);

}  // namespace detail

/// Copies `source` to `destination` until `source` ends, and does not shut `destination` down.
/// Between two files, and between busy sockets or pipes, the kernel moves the bytes without passing
/// them through the program; such sockets may be in non-blocking mode afterwards. Other fibers
/// cannot read `source` or write `destination` until the end. If one stream is closed while the
/// copy waits for the other, the copy notices only when the next bytes arrive.
/// Returns: the number of bytes copied.
/// Switchpoint.
/// Throws: std::system_error; a pending interruption. Up to 1 MiB that was read but not written may
///         be lost then.
/// Source: splice(2), copy_file_range(2).
template <stream From, stream To>
std::uint64_t copy(From& source, To& destination) {
  return detail::copy(detail::input_of(source), detail::output_of(destination));
}

/// Copies each stream to the other until both have ended. When one ends, the other is shut down
/// with SHUT_WR, and the opposite direction stays open. If a direction fails, both end.
/// Returns: the number of bytes copied in each direction.
/// Switchpoint.
/// Throws: as copy(); timed_out if both streams have been silent for `idle`.
template <stream First, stream Second>
proxied proxy(First& first, Second& second, call_site site = call_site::here()) {
  proxied bytes;
  detail::proxy(detail::joined(first), detail::joined(second), std::nullopt, bytes, site);
  return bytes;
}
template <stream First, stream Second>
proxied proxy(First& first, Second& second, detail::timespan idle,
              call_site site = call_site::here()) {
  proxied bytes;
  detail::proxy(detail::joined(first), detail::joined(second), idle, bytes, site);
  return bytes;
}
/// The same for a caller that needs the numbers even if the call throws, for example for a log.
/// Sets `bytes` even if it throws.
/// Switchpoint.
/// Throws: as the other proxy().
template <stream First, stream Second>
void proxy(First& first, Second& second, detail::timespan idle, proxied& bytes,
           call_site site = call_site::here()) {
  detail::proxy(detail::joined(first), detail::joined(second), idle, bytes, site);
}

}}  // namespace motet::MOTET_ABI
