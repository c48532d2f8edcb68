// SPDX-License-Identifier: MIT
// See platform/frames/parked_frames.hpp. Source: the Itanium C++ ABI: Exception Handling, 1.5, for
// the unwinder; DWARF 5, 6.4, for the tables.
#include "platform/frames/parked_frames.hpp"

#include <unwind.h>

#include <cstddef>

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

struct noting {
  std::span<void*> buffer;
  const void* first;  // inner frames are the observer's
  std::size_t count = 0;
};

_Unwind_Reason_Code note(_Unwind_Context* frame, void* argument) {
  auto& notes = *static_cast<noting*>(argument);
  auto* address = reinterpret_cast<void*>(_Unwind_GetIP(frame));
  if (notes.count == 0 && address != notes.first) return _URC_NO_REASON;
  if (notes.count == notes.buffer.size() || address == nullptr) return _URC_NORMAL_STOP;
  notes.buffer[notes.count++] = address;
  return _URC_NO_REASON;
}

saved_context saved_position_of(const context& fiber_context) noexcept {
  if (switches_inline) return fiber_context;
  return as_saved_inline(fiber_context);
}

void follow(void* argument) {
  ::_Unwind_Backtrace(&note, argument);
}

}  // namespace

bool has_begun(const context& fiber_context) noexcept {
  return fiber_context.stack_pointer != nullptr &&
         saved_position_of(fiber_context).resume_at !=
             reinterpret_cast<void*>(&motet_enter_context);
}

std::span<void*> parked_frames(const context& fiber_context, std::span<void*> buffer) noexcept {
  if (!has_begun(fiber_context)) return {};
  const saved_context position = saved_position_of(fiber_context);
  noting notes{buffer, position.resume_at};
  motet_look_from(&position, &follow, &notes);
  return buffer.first(notes.count);
}

std::span<void*> own_frames(std::span<void*> buffer) noexcept {
  noting notes{buffer, __builtin_extract_return_addr(__builtin_return_address(0))};
  follow(&notes);
  return buffer.first(notes.count);
}

}}}  // namespace motet::MOTET_ABI::detail
