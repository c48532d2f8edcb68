// SPDX-License-Identifier: MIT
// The stacks of a thread's fibers, in words.
#pragma once

#include <cstddef>
#include <motet/detail/core/control_block.hpp>
#include <span>
#include <string>
#include <unordered_map>

#include "platform/frames/symbol_at.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

class thread_state;

inline constexpr std::size_t most_frames = 64;

/// On the fiber's own thread. Returns: its return addresses, the innermost first; empty if it has
/// not begun, or if its context cannot be believed.
std::span<void*> frames_of(const thread_state& thread, const control_block& fiber,
                           std::span<void*, most_frames> buffer) noexcept;

/// As backtrace_symbols(3) does: "file(function+offset) [address]", or without the function. For
/// any text that has << for words and hex() for numbers, so in a signal handler, too.
template <typename Text>
void describe_frame(Text& output, const void* address, const char* function, const symbol& entry) {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  if (entry.file != nullptr) {
    output << entry.file << "(" << (function == nullptr ? "" : function) << "+";
    output.hex(entry.offset) << ") ";
  }
  (output << "[").hex(number) << "]";
}

/// Describes frames, each address once. Most fibers of a crowd stand in few places.
class frame_names {
 public:
  /// Throws: std::bad_alloc.
  const std::string& of(const void* address);

 private:
  std::unordered_map<const void*, std::string> cache_;
};

}}}  // namespace motet::MOTET_ABI::detail
