// SPDX-License-Identifier: MIT
// The switch for aarch64, inline: the compiler saves the registers it needs and no others. The asm
// stores the stack pointer, the address to go on at, and the three registers that no compiler is
// told of (x29 is the frame's, x30 the return address, x19 may be a base of the frame), by plain
// moves: it pushes nothing, so what the unwinder knows of the surrounding function holds at the
// label too. Source: AAPCS64, 6.1; the rounding mode in FPCR belongs to the thread, not to a
// context.
#pragma once

#include <motet/detail/base/abi.hpp>

// "v" stands for the whole of a vector register, of any length. Only g++ has a name for the
// first-fault register, which no call preserves.
#if defined(__ARM_FEATURE_SVE)
#if defined(__clang__)
#define MOTET_FFR_CLOBBER
#else
#define MOTET_FFR_CLOBBER , "ffr"
#endif
#define MOTET_SVE_CLOBBERS                                                                         \
  , "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13", "p14", \
      "p15" MOTET_FFR_CLOBBER
#else
#define MOTET_SVE_CLOBBERS
#endif

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// The saved state of a context that is not running. The asm below depends on the order.
struct saved_context {
  void* stack_pointer = nullptr;
  void* resume_at = nullptr;
  void* frame = nullptr;        // x29
  void* return_link = nullptr;  // x30
  void* base = nullptr;         // x19
};

/// The label is a landing pad (hint 36 is `bti j`) for programs that check their jumps.
[[gnu::always_inline]] inline void switch_inline(saved_context* save,
                                                 const saved_context* load) noexcept {
  register saved_context* destination asm("x0") = save;
  register const saved_context* source asm("x1") = load;
  asm volatile(
      "mov x16, sp\n\t"
      "adr x17, 1f\n\t"
      "stp x16, x17, [%0]\n\t"
      "stp x29, x30, [%0, 16]\n\t"
      "str x19, [%0, 32]\n\t"
      "ldp x16, x17, [%1]\n\t"
      "ldp x29, x30, [%1, 16]\n\t"
      "ldr x19, [%1, 32]\n\t"
      "mov sp, x16\n\t"
      "br x17\n"
      "1:\n\t"
      "hint 36"
      : "+r"(destination), "+r"(source)
      :
      : "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15",
        "x16", "x17", "x18", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "v0",
        "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14",
        "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27",
        "v28", "v29", "v30", "v31" MOTET_SVE_CLOBBERS, "cc", "memory");
}

/// Restores the context at `load`, for good.
[[gnu::always_inline]] inline void load_inline(const saved_context* load) noexcept {
  register const saved_context* source asm("x1") = load;
  asm volatile(
      "ldp x16, x17, [%0]\n\t"
      "ldp x29, x30, [%0, 16]\n\t"
      "ldr x19, [%0, 32]\n\t"
      "mov sp, x16\n\t"
      "br x17"
      :
      : "r"(source)
      : "x16", "x17", "memory");
}

}}}  // namespace motet::MOTET_ABI::detail

#undef MOTET_FFR_CLOBBER
#undef MOTET_SVE_CLOBBERS
