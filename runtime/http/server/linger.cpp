// SPDX-License-Identifier: MIT
// See http/server/linger.hpp.
#include "http/server/linger.hpp"

#include <chrono>
#include <cstdint>
#include <motet/base/clock.hpp>
#include <motet/cancellation/cancel.hpp>

namespace motet { inline namespace MOTET_ABI { namespace http {

namespace {

using namespace std::chrono_literals;

constexpr clock::duration longest_silence = 1s;
constexpr clock::duration longest_in_all = 30s;
constexpr std::uint64_t most_dropped = std::uint64_t{64} * 1024 * 1024;
/// After the first second: who sends less is not worth a connection.
constexpr std::uint64_t least_per_second = std::uint64_t{16} * 1024;

/// Returns: how many bytes were dropped; 0 at the end.
std::size_t drop_some(detail::read_buffer& input) {
  std::size_t size = 0;
  move_on_after(longest_silence, [&] { size = input.peek(1).size(); });
  input.skip(size);
  return size;
}

}  // namespace

void linger(detail::any_stream& stream, detail::read_buffer& input,
            const std::stop_token& drain) noexcept {
  try {
    const clock::time_point start = clock::now();
    stream.shutdown(SHUT_WR);
    for (std::uint64_t bytes_dropped = 0; bytes_dropped < most_dropped;) {
      const std::size_t size = drop_some(input);
      bytes_dropped += size;
      const clock::duration limit = drain.stop_requested() ? longest_silence : longest_in_all;
      const clock::duration duration = clock::now() - start;
      const auto seconds =
          static_cast<std::uint64_t>(std::chrono::floor<std::chrono::seconds>(duration).count());
      if (size == 0 || duration >= limit || bytes_dropped < seconds * least_per_second) return;
    }
  } catch (...) {  // the connection is closed anyway
  }
}

}}}  // namespace motet::MOTET_ABI::http
