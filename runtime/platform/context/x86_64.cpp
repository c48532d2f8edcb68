// SPDX-License-Identifier: MIT
// The switch for x86-64, out of line. A saved stack, lowest address first:
//
//   r15 r14 r13 r12 rbx rbp | return address
//
// A fresh context of either kind goes on in motet_enter_context, with the argument in rbx and the
// function in rbp, to which it jumps: after a call that never returns, the processor's predictions
// of all later returns would be one place off.
// Source: System V ABI, AMD64 supplement, 3.2.1 (registers) and 3.2.2 (alignment).

#include <cstddef>
#include <cstdint>
#include <motet/detail/platform/context.hpp>

#include "platform/frames/parked_frames.hpp"
#include "platform/frames/signal_frame.hpp"

asm(R"(
.text
.p2align 4
.globl motet_switch_context
.type motet_switch_context, @function
motet_switch_context:
  .cfi_startproc
  pushq %rbp
  .cfi_adjust_cfa_offset 8
  pushq %rbx
  .cfi_adjust_cfa_offset 8
  pushq %r12
  .cfi_adjust_cfa_offset 8
  pushq %r13
  .cfi_adjust_cfa_offset 8
  pushq %r14
  .cfi_adjust_cfa_offset 8
  pushq %r15
  .cfi_adjust_cfa_offset 8
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  .cfi_adjust_cfa_offset -8
  popq %r14
  .cfi_adjust_cfa_offset -8
  popq %r13
  .cfi_adjust_cfa_offset -8
  popq %r12
  .cfi_adjust_cfa_offset -8
  popq %rbx
  .cfi_adjust_cfa_offset -8
  popq %rbp
  .cfi_adjust_cfa_offset -8
  ret
  .cfi_endproc
.size motet_switch_context, .-motet_switch_context

.p2align 4
.globl motet_enter_context
.type motet_enter_context, @function
motet_enter_context:
  .cfi_startproc
  .cfi_undefined rip
  movq %rbx, %rdi
  movq %rbp, %rax
  xorl %ebp, %ebp
  leaq 1f(%rip), %rcx
  pushq %rcx
  .cfi_adjust_cfa_offset 8
  jmpq *%rax
  .cfi_adjust_cfa_offset -8
1:
  ud2
  .cfi_endproc
.size motet_enter_context, .-motet_enter_context
)");

// The tables of motet_look_from() say, while it has called: the frame of the caller is at the stack
// pointer of the context, whose address is in rbx, and the caller's rip, rbp and rbx are in the
// context. 0x0f is DW_CFA_def_cfa_expression, 0x10 DW_CFA_expression with the register behind it
// (16: rip, 6: rbp, 3: rbx), then the length of an expression; 0x73 is DW_OP_breg3, rbx plus the
// offset behind it, 0x06 DW_OP_deref. Source: DWARF 5, 2.5.1, 6.4.2 and 7.24; System V ABI, AMD64
// supplement, 3.6.2 (numbers of registers).
asm(R"(
.text
.p2align 4
.globl motet_look_from
.type motet_look_from, @function
motet_look_from:
  .cfi_startproc
  pushq %rbx
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset rbx, 0
  movq %rdi, %rbx
  movq %rdx, %rdi
  .cfi_remember_state
  .cfi_escape 0x0f, 0x03, 0x73, 0x00, 0x06
  .cfi_escape 0x10, 0x10, 0x02, 0x73, 0x08
  .cfi_escape 0x10, 0x06, 0x02, 0x73, 0x10
  .cfi_escape 0x10, 0x03, 0x02, 0x73, 0x18
  callq *%rsi
  nop
  .cfi_restore_state
  popq %rbx
  .cfi_adjust_cfa_offset -8
  .cfi_restore rbx
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

/// Recognises the last three instructions of switch_inline(), which is inlined into many functions.
/// The bytes are compared one by one, and no further than they match: so only bytes of code that
/// the processor is about to run are read.
bool ends_switch(const void* instruction) noexcept {
  constexpr unsigned char last[] = {0x48, 0x8b, 0x6e, 0x10,  // movq 16(%rsi), %rbp
                                    0x48, 0x8b, 0x5e, 0x18,  // movq 24(%rsi), %rbx
                                    0xff, 0x66, 0x08};       // jmpq *8(%rsi)
  const auto* code = static_cast<const unsigned char*>(instruction);
  for (const std::size_t begin : {std::size_t{0}, std::size_t{4}, std::size_t{8}}) {
    std::size_t length = begin;
    while (length < sizeof last && code[length - begin] == last[length]) ++length;
    if (length == sizeof last) return true;
  }
  return false;
}

void lay_out_for_call(saved_context& fresh, void* top, entry_function entry,
                      void* argument) noexcept {
  auto* word = static_cast<std::uintptr_t*>(top);
  *--word = 0;  // keeps the stack 16-byte aligned after the return below
  *--word = 0;
  *--word = reinterpret_cast<std::uintptr_t>(&motet_enter_context);
  *--word = reinterpret_cast<std::uintptr_t>(entry);     // rbp
  *--word = reinterpret_cast<std::uintptr_t>(argument);  // rbx
  for (int other = 12; other <= 15; ++other) *--word = 0;
  fresh.stack_pointer = word;
}

saved_context as_saved_inline(const saved_context& saved_by_call) noexcept {
  auto* slots = static_cast<void**>(saved_by_call.stack_pointer);
  saved_context position;
  position.stack_pointer = static_cast<void*>(slots + 7);
  position.resume_at = slots[6];
  position.frame = slots[5];
  position.base = slots[4];
  return position;
}

}}}  // namespace motet::MOTET_ABI::detail
