// SPDX-License-Identifier: MIT
// See platform/parked_frames.hpp. Source: the Itanium C++ ABI: Exception Handling, 1.5, for the
// unwinder; DWARF 5, 6.4, for the tables.
#include "platform/parked_frames.hpp"

#include <unwind.h>

#include <cstddef>
#include <cstdint>

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

struct noting {
  std::span<void*> room;
  const void* first;  // inner frames are the observer's
  std::size_t used = 0;
};

_Unwind_Reason_Code note(_Unwind_Context* frame, void* argument) {
  auto& all = *static_cast<noting*>(argument);
  auto* address = reinterpret_cast<void*>(_Unwind_GetIP(frame));
  if (all.used == 0 && address != all.first) return _URC_NO_REASON;
  if (all.used == all.room.size() || address == nullptr) return _URC_NORMAL_STOP;
  all.room[all.used++] = address;
  return _URC_NO_REASON;
}

saved_context left_at(const context& parked) noexcept {
  if (switches_inline) return parked;
  return as_left_inline(parked);
}

void follow(void* argument) {
  ::_Unwind_Backtrace(&note, argument);
}

}  // namespace

bool has_begun(const context& parked) noexcept {
  return parked.stack_pointer != nullptr &&
         left_at(parked).resume_at != reinterpret_cast<void*>(&motet_enter_context);
}

std::span<void*> parked_frames(const context& parked, std::span<void*> room) noexcept {
  if (!has_begun(parked)) return {};
  const saved_context where = left_at(parked);
  noting all{room, where.resume_at};
  motet_look_from(&where, &follow, &all);
  return room.first(all.used);
}

std::span<void*> own_frames(std::span<void*> room) noexcept {
  noting all{room, __builtin_extract_return_addr(__builtin_return_address(0))};
  follow(&all);
  return room.first(all.used);
}

}}}  // namespace motet::MOTET_ABI::detail
