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
#include <motet/detail/ground/context.hpp>

#include "ground/interrupted_place.hpp"

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
  const auto* at = static_cast<const unsigned char*>(instruction);
  for (const std::size_t begin : {std::size_t{0}, std::size_t{4}, std::size_t{8}}) {
    std::size_t same = begin;
    while (same < sizeof last && at[same - begin] == last[same]) ++same;
    if (same == sizeof last) return true;
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

}}}  // namespace motet::MOTET_ABI::detail
