// SPDX-License-Identifier: MIT
// The switch for x86-64, out of line. A saved stack, lowest address first:
//
//   r15 r14 r13 r12 rbx rbp | return address
//
// A fresh context of either kind goes on in motet_enter_context, with the argument in rbx and the
// function in rbp. Source: System V ABI, AMD64 supplement, 3.2.1 (registers) and 3.2.2 (alignment).

#include <cstdint>
#include <motet/detail/context.hpp>

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
.type motet_enter_context, @function
motet_enter_context:
  .cfi_startproc
  .cfi_undefined rip
  movq %rbx, %rdi
  movq %rbp, %rax
  xorl %ebp, %ebp
  callq *%rax
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

namespace motet::inline MOTET_ABI::detail {

saved_context lay_out_for_inline(void* top, entry_function entry, void* argument) noexcept {
  return {top, reinterpret_cast<void*>(motet_context_entry_address), reinterpret_cast<void*>(entry),
          argument};
}

saved_context lay_out_for_call(void* top, entry_function entry, void* argument) noexcept {
  auto* word = static_cast<std::uintptr_t*>(top);
  *--word = 0;  // keeps the stack 16-byte aligned after the return below
  *--word = 0;
  *--word = motet_context_entry_address;
  *--word = reinterpret_cast<std::uintptr_t>(entry);     // rbp
  *--word = reinterpret_cast<std::uintptr_t>(argument);  // rbx
  for (int other = 12; other <= 15; ++other) *--word = 0;
  return {word, nullptr, nullptr, nullptr};
}

}  // namespace motet::inline MOTET_ABI::detail
