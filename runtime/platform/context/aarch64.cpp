// SPDX-License-Identifier: MIT
// The switch for aarch64, out of line. A saved stack, lowest address first:
//
//   x19 x20 ... x28 x29 x30 | d8 d9 ... d15
//
// A fresh context of either kind goes on in motet_enter_context, with the argument in x19 and the
// function in x29. Source: AAPCS64, 6.1.1 and 6.1.2 (registers) and 6.4.5.1 (alignment); `hint 34`
// and `hint 38` are the landing pads `bti c` and `bti jc`.

#include <cstdint>
#include <motet/detail/platform/context.hpp>

#include "platform/frames/parked_frames.hpp"
#include "platform/frames/signal_frame.hpp"

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

// The tables of motet_look_from() say, while it has called: the frame of the caller is at the stack
// pointer of the context, whose address is in x19, and where the caller goes on and its x29, x30
// and x19 are in the context. Where it goes on has a column of its own, 96, which the unwinder has
// for signal frames: for the caller may still have its own return address in x30. 0x0f is
// DW_CFA_def_cfa_expression, 0x10 DW_CFA_expression with the register behind it, then the length of
// an expression; 0x83 is DW_OP_breg19, x19 plus the offset behind it, 0x06 DW_OP_deref.
// Source: DWARF 5, 2.5.1, 6.4.2 and 7.24; DWARF for the Arm 64-bit Architecture, 4.1.
asm(R"(
.text
.p2align 4
.globl motet_look_from
.type motet_look_from, %function
motet_look_from:
  .cfi_startproc
  .cfi_return_column 96
  .cfi_register 96, 30
  hint 34
  stp x19, x30, [sp, -16]!
  .cfi_adjust_cfa_offset 16
  .cfi_rel_offset 19, 0
  .cfi_rel_offset 96, 8
  mov x19, x0
  mov x0, x2
  .cfi_remember_state
  .cfi_escape 0x0f, 0x03, 0x83, 0x00, 0x06
  .cfi_escape 0x10, 0x60, 0x02, 0x83, 0x08
  .cfi_escape 0x10, 0x1d, 0x02, 0x83, 0x10
  .cfi_escape 0x10, 0x1e, 0x02, 0x83, 0x18
  .cfi_escape 0x10, 0x13, 0x02, 0x83, 0x20
  blr x1
  nop
  .cfi_restore_state
  ldp x19, x30, [sp], 16
  .cfi_adjust_cfa_offset -16
  .cfi_restore 19
  .cfi_register 96, 30
  ret
  .cfi_endproc
.size motet_look_from, .-motet_look_from
.globl motet_look_from_end
motet_look_from_end:
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
  auto* slots = static_cast<std::uintptr_t*>(top) - words;
  for (int i = 0; i < words; ++i) slots[i] = 0;
  slots[0] = reinterpret_cast<std::uintptr_t>(argument);               // x19
  slots[10] = reinterpret_cast<std::uintptr_t>(entry);                 // x29
  slots[11] = reinterpret_cast<std::uintptr_t>(&motet_enter_context);  // x30
  fresh.stack_pointer = slots;
}

saved_context as_saved_inline(const saved_context& saved_by_call) noexcept {
  auto* slots = static_cast<void**>(saved_by_call.stack_pointer);
  saved_context position;
  position.stack_pointer = slots + 20;
  position.resume_at = slots[11];
  position.frame = slots[10];
  position.return_link = slots[11];
  position.base = slots[0];
  return position;
}

}}}  // namespace motet::MOTET_ABI::detail
