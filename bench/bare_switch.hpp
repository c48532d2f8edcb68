// SPDX-License-Identifier: MIT
// The least that goes on on another stack: four words are saved and four are loaded, the loads
// first, and the compiler keeps nothing else in a register meanwhile. Which place runs is known
// from a register. Nothing of motet is used here: it is held against this.
#pragma once

#include <cstddef>

namespace bench {

/// Where something that does not run goes on.
struct place {
  void* stack = nullptr;
  void* resume_at = nullptr;
  void* frame = nullptr;
  void* base = nullptr;
};

/// The first function on a stack, which must not return.
using first_function = void (*)(place* left, place* here);

/// top: of a stack, 16-byte aligned.
inline void lay_out(place& fresh, std::byte* top, first_function first) {
  fresh.stack = top - 8;  // as if `first` had been called
  fresh.resume_at = reinterpret_cast<void*>(first);
  fresh.frame = nullptr;
}

/// Returns: `from`, when that is gone on with.
[[gnu::always_inline]] inline place* switch_bare(place* from, place* to) {
  asm volatile(
      "movq 8(%%rsi), %%rcx\n\t"
      "movq (%%rsi), %%rdx\n\t"
      "leaq 1f(%%rip), %%rax\n\t"
      "movq %%rsp, (%%rdi)\n\t"
      "movq %%rax, 8(%%rdi)\n\t"
      "movq %%rbp, 16(%%rdi)\n\t"
      "movq %%rbx, 24(%%rdi)\n\t"
      "movq %%rdx, %%rsp\n\t"
      "movq 16(%%rsi), %%rbp\n\t"
      "movq 24(%%rsi), %%rbx\n\t"
      "jmpq *%%rcx\n"
      "1:"
      : "+S"(to), "+D"(from)
      :
      : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1",
        "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
        "xmm13", "xmm14", "xmm15", "cc", "memory");
  return to;
}

}  // namespace bench
