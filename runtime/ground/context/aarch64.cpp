// SPDX-License-Identifier: MIT
// The switch for aarch64, out of line. A saved stack, lowest address first:
//
//   x19 x20 ... x28 x29 x30 | d8 d9 ... d15
//
// A fresh context of either kind goes on in motet_enter_context, with the argument in x19 and the
// function in x29. Source: AAPCS64, 6.1.1 and 6.1.2 (registers) and 6.4.5.1 (alignment); `hint 34`
// and `hint 38` are the landing pads `bti c` and `bti jc`.

#include <cstdint>
#include <motet/detail/ground/context.hpp>

#include "ground/interrupted_place.hpp"

asm(R"(
.text
.p2align 4
.globl motet_switch_context
.type motet_switch_context, %function
motet_switch_context:
  .cfi_startproc
  hint 34
  sub sp, sp, 160
  .cfi_adjust_cfa_offset 160
  stp x19, x20, [sp]
  stp x21, x22, [sp, 16]
  stp x23, x24, [sp, 32]
  stp x25, x26, [sp, 48]
  stp x27, x28, [sp, 64]
  stp x29, x30, [sp, 80]
  .cfi_rel_offset x29, 80
  .cfi_rel_offset x30, 88
  stp d8, d9, [sp, 96]
  stp d10, d11, [sp, 112]
  stp d12, d13, [sp, 128]
  stp d14, d15, [sp, 144]
  mov x16, sp
  str x16, [x0]
  mov sp, x1
  ldp d14, d15, [sp, 144]
  ldp d12, d13, [sp, 128]
  ldp d10, d11, [sp, 112]
  ldp d8, d9, [sp, 96]
  ldp x29, x30, [sp, 80]
  .cfi_restore x29
  .cfi_restore x30
  ldp x27, x28, [sp, 64]
  ldp x25, x26, [sp, 48]
  ldp x23, x24, [sp, 32]
  ldp x21, x22, [sp, 16]
  ldp x19, x20, [sp]
  add sp, sp, 160
  .cfi_adjust_cfa_offset -160
  ret
  .cfi_endproc
.size motet_switch_context, .-motet_switch_context

.p2align 4
.globl motet_enter_context
.type motet_enter_context, %function
motet_enter_context:
  .cfi_startproc
  .cfi_undefined x30
  hint 38
  mov x0, x19
  mov x16, x29
  mov x29, xzr
  adr x30, 1f
  br x16
1:
  brk 1
  .cfi_endproc
.size motet_enter_context, .-motet_enter_context
)");

namespace motet { inline namespace MOTET_ABI { namespace detail {

void lay_out_for_inline(saved_context& fresh, void* top, entry_function entry,
                        void* argument) noexcept {
  fresh.stack_pointer = top;
  fresh.resume_at = reinterpret_cast<void*>(&motet_enter_context);
  fresh.frame = reinterpret_cast<void*>(entry);
  fresh.base = argument;
}

/// Recognises the last instruction of switch_inline(), br x17. Other functions may contain the same
/// instruction; their frames are then not followed.
bool ends_switch(const void* instruction) noexcept {
  return *static_cast<const std::uint32_t*>(instruction) == 0xd61f0220;
}

void lay_out_for_call(saved_context& fresh, void* top, entry_function entry,
                      void* argument) noexcept {
  constexpr int words = 20;
  auto* saved = static_cast<std::uintptr_t*>(top) - words;
  for (int each = 0; each < words; ++each) saved[each] = 0;
  saved[0] = reinterpret_cast<std::uintptr_t>(argument);               // x19
  saved[10] = reinterpret_cast<std::uintptr_t>(entry);                 // x29
  saved[11] = reinterpret_cast<std::uintptr_t>(&motet_enter_context);  // x30
  fresh.stack_pointer = saved;
}

}}}  // namespace motet::MOTET_ABI::detail
