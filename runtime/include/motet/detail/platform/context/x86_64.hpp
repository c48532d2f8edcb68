// SPDX-License-Identifier: MIT
// The switch for x86-64, inline: the compiler saves the registers it needs and no others. The asm
// stores the stack pointer, the address to go on at, and the two registers that no compiler can be
// told of (g++ refuses rbp in the list of clobbers, clang 14 silently accepts rbx, though either
// may be a base of the frame), by plain moves: it pushes nothing, so the red zone stays, and
// what the unwinder knows of the surrounding function holds at the label too. Source: System V ABI,
// AMD64 supplement, 3.2.1; the rounding modes of x87 and SSE belong to the thread, not to a
// context.
#pragma once

#include <motet/detail/base/abi.hpp>

#if defined(__APX_F__)
#error "motet's switch does not keep the registers r16 to r31: compile without -mapxf"
#endif

#if defined(__AVX512F__)
#define MOTET_AVX512_CLOBBERS                                                                      \
  , "k0", "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24",         \
      "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", \
      "k6", "k7"
#else
#define MOTET_AVX512_CLOBBERS
#endif

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// The saved state of a context that is not running. The asm below depends on the order.
struct saved_context {
  void* stack_pointer = nullptr;
  void* resume_at = nullptr;
  void* frame = nullptr;  // rbp
  void* base = nullptr;   // rbx
};

[[gnu::always_inline]] inline void switch_inline(saved_context* save,
                                                 const saved_context* load) noexcept {
  asm volatile(
      "leaq 1f(%%rip), %%rax\n\t"
      "movq %%rsp, (%%rdi)\n\t"
      "movq %%rax, 8(%%rdi)\n\t"
      "movq %%rbp, 16(%%rdi)\n\t"
      "movq %%rbx, 24(%%rdi)\n\t"
      "movq (%%rsi), %%rsp\n\t"
      "movq 16(%%rsi), %%rbp\n\t"
      "movq 24(%%rsi), %%rbx\n\t"
      "jmpq *8(%%rsi)\n"
      "1:"
      : "+D"(save), "+S"(load)
      :
      : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1",
        "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
        "xmm13", "xmm14", "xmm15" MOTET_AVX512_CLOBBERS, "st", "st(1)", "st(2)", "st(3)", "st(4)",
        "st(5)", "st(6)", "st(7)", "cc", "memory");
}

/// Restores the context at `load`, for good. Ends with the same instructions as switch_inline(),
/// which ends_switch() recognises.
[[gnu::always_inline]] inline void load_inline(const saved_context* load) noexcept {
  asm volatile(
      "movq (%%rsi), %%rsp\n\t"
      "movq 16(%%rsi), %%rbp\n\t"
      "movq 24(%%rsi), %%rbx\n\t"
      "jmpq *8(%%rsi)"
      :
      : "S"(load)
      : "memory");
}

}}}  // namespace motet::MOTET_ABI::detail

#undef MOTET_AVX512_CLOBBERS
