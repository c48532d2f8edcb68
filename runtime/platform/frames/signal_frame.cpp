// SPDX-License-Identifier: MIT
// See platform/frames/signal_frame.hpp. Source: backtrace(3), which a handler may call once it has
// been called before; Itanium C++ ABI: Exception Handling, 1.6 and 2.2.2.
#include "platform/frames/signal_frame.hpp"

#include <execinfo.h>
#include <ucontext.h>  // IWYU pragma: keep

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "platform/frames/parked_frames.hpp"
#include "platform/frames/return_addresses.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// The thread may be looking at a parked fiber just now: then that fiber's frames seem to follow.
std::size_t frames_before_a_look(std::span<void* const> frames) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(&motet_look_from);
  const auto end = reinterpret_cast<std::uintptr_t>(&motet_look_from_end);
  std::size_t count = 0;
  while (count < frames.size()) {
    const auto address = reinterpret_cast<std::uintptr_t>(frames[count]);
    if (address >= begin && address < end) break;
    ++count;
  }
  return count;
}

}  // namespace

signal_frame::signal_frame(const void* context) noexcept {
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  instruction_ = reinterpret_cast<void*>(machine.gregs[REG_RIP]);
  stack_pointer_ = reinterpret_cast<const std::byte*>(machine.gregs[REG_RSP]);
#elif defined(__aarch64__)
  instruction_ = reinterpret_cast<void*>(machine.pc);
  stack_pointer_ = reinterpret_cast<const std::byte*>(machine.sp);
#endif
}

/// In a switch, the thread's record of the running fiber and its stack pointer do not change at the
/// same instant.
const char* signal_frame::doubt(const stack& current_stack, bool throws) const noexcept {
  const bool on_its_stack =
      stack_pointer_ >= current_stack.bottom && stack_pointer_ <= current_stack.top;
  if (!on_its_stack || ends_switch(instruction_)) return "between two fibers, or on another stack";
  return throws ? "on the way of an exception" : nullptr;
}

std::span<void*> signal_frame::frames(const stack& current_stack,
                                      std::span<void*> buffer) const noexcept {
  const std::span<void*> whole = buffer;
  const auto size =
      static_cast<std::size_t>(::backtrace(buffer.data(), static_cast<int>(buffer.size())));
  buffer = buffer.first(size);
  const auto first = std::find(buffer.begin(), buffer.end(), instruction_);
  if (first != buffer.end())
    buffer = buffer.subspan(static_cast<std::size_t>(first - buffer.begin()));
  buffer = buffer.first(frames_before_a_look(buffer));
  if (buffer.size() != 1) return buffer;
  std::array<std::uintptr_t, 128> words;  // few, because they are on that stack
  return return_addresses(
      instruction_,
      read_stack(reinterpret_cast<std::uintptr_t>(stack_pointer_), current_stack.top, words),
      whole);
}

}}}  // namespace motet::MOTET_ABI::detail
