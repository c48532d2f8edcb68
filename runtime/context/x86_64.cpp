// SPDX-License-Identifier: MIT
// The switch for x86-64, out of line. A saved stack, lowest address first:
//
//   r15 r14 r13 r12 rbx rbp | return address
//
// and a fresh one, which returns into motet_enter_context with the argument in r12, the function in
// r13: Source: System V ABI, AMD64 supplement, 3.2.1 (registers) and 3.2.2 (alignment). The
// rounding modes of x87 and SSE belong to the thread, not to a context.

#include <cstdint>

#include "../context.hpp"

asm(R"(
.text
.p2align 4
.globl motet_switch_context
.hidden motet_switch_context
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
.type motet_enter_context, @function
motet_enter_context:
  .cfi_startproc
  .cfi_undefined rip
  movq %r12, %rdi
  xorl %ebp, %ebp
  callq *%r13
  ud2
  .cfi_endproc
.size motet_enter_context, .-motet_enter_context

.globl motet_context_entry_address
.hidden motet_context_entry_address
.section .data.rel.ro.local,"aw"
.p2align 3
motet_context_entry_address:
  .quad motet_enter_context
.text
)");

extern "C" const std::uintptr_t motet_context_entry_address;

namespace motet::detail {

void* lay_out(void* top, entry_function entry, void* argument) noexcept {
  auto* word = static_cast<std::uintptr_t*>(top);
  *--word = 0;  // keeps the stack 16-byte aligned after the return below
  *--word = 0;
  *--word = motet_context_entry_address;
  *--word = 0;                                           // rbp
  *--word = 0;                                           // rbx
  *--word = reinterpret_cast<std::uintptr_t>(argument);  // r12
  *--word = reinterpret_cast<std::uintptr_t>(entry);     // r13
  *--word = 0;                                           // r14
  *--word = 0;                                           // r15
  return word;
}

}  // namespace motet::detail
