// SPDX-License-Identifier: MIT
// The ways to move bytes from one stream to another.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <motet/cancellation/cancel.hpp>
#include <motet/detail/io/stream_direction.hpp>
#include <motet/io/fd.hpp>
#include <optional>
#include <span>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// The progress of a running copy.
struct copy_progress {
  std::uint64_t bytes = 0;
  deadline* limit = nullptr;  // moved on with each part, if given
  timespan idle = clock::duration::zero();

  void came() {
    if (limit != nullptr) limit->reset(idle);
  }
  void delivered(std::size_t count) noexcept { bytes += count; }
};

/// Whether the kernel can move bytes between two descriptors without the program.
enum class shortcut { none, splice, file_range };
shortcut shortcut_between(int source_fd, int target_fd) noexcept;

/// Copies what one read gives.
/// Returns: bytes copied; 0 at the end.
/// Throws: std::system_error; a pending interruption.
std::size_t copy_part(direction_lock& source, direction_lock& target, std::span<std::byte> buffer,
                      copy_progress& progress);
void copy_by_buffer(direction_lock& source, direction_lock& target, copy_progress& progress);

/// Each returns false if the kernel turns out not to support it; bytes moved until then have
/// arrived.
bool copy_by_splice(direction_lock& source, direction_lock& target, copy_progress& progress);
bool copy_by_file_range(direction_lock& source, direction_lock& target, copy_progress& progress);

}}}  // namespace motet::MOTET_ABI::detail
