// SPDX-License-Identifier: MIT
// See observe/dumps/fiber_frames.hpp.
#include "observe/dumps/fiber_frames.hpp"

#include <cxxabi.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "core/thread_state.hpp"
#include "platform/frames/parked_frames.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

struct text {
  std::string content;

  text& operator<<(std::string_view piece) {
    content += piece;
    return *this;
  }
  text& hex(std::uint64_t number) {
    std::array<char, 16> digits;
    const char* end = std::to_chars(digits.begin(), digits.end(), number, 16).ptr;
    return *this << "0x" << std::string_view(digits.data(), end);
  }
};

/// A main fiber may be on its thread's own stack, whose bounds are not known.
bool can_be_believed(const control_block& fiber) noexcept {
  const auto* address = static_cast<const std::byte*>(fiber.resume_context.stack_pointer);
  if (!fiber.has_stack()) return fiber.is_main && address != nullptr;
  return address >= fiber.runs_on.bottom && address <= fiber.runs_on.top;
}

/// The demangler has arrays on the stack, some 70 bytes for each character of a name, and calls
/// itself; the stack is that of any fiber.
bool may_demangle(const char* name) noexcept {
  constexpr std::size_t longest = 1'000, for_a_character = 200, for_its_callers = 8'192;
  const std::size_t length = std::strlen(name);
  const thread_state* thread = self();
  if (thread == nullptr) return length <= longest;
  const stack& memory = thread->running().runs_on;
  const auto* frame = static_cast<const std::byte*>(__builtin_frame_address(0));
  if (frame < memory.bottom || frame > memory.top) return length <= longest;
  return length * for_a_character + for_its_callers <
         static_cast<std::size_t>(frame - memory.bottom);
}

}  // namespace

std::span<void*> frames_of(const thread_state& thread, const control_block& fiber,
                           std::span<void*, most_frames> buffer) noexcept {
  if (&thread.running() == &fiber) return own_frames(buffer);
  return can_be_believed(fiber) ? parked_frames(fiber.resume_context, buffer) : buffer.first(0);
}

const std::string& frame_names::of(const void* address) {
  const auto [position, fresh] = cache_.try_emplace(address);
  if (fresh) {
    const symbol entry = symbol_at(address);
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> readable(
        entry.name == nullptr || !may_demangle(entry.name)
            ? nullptr
            : abi::__cxa_demangle(entry.name, nullptr, nullptr, &status),
        &std::free);
    text output;
    describe_frame(output, address, readable == nullptr ? entry.name : readable.get(), entry);
    position->second = std::move(output.content);
  }
  return position->second;
}

}}}  // namespace motet::MOTET_ABI::detail
