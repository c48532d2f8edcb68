// SPDX-License-Identifier: MIT
// The place at which a signal has interrupted a thread, and whether the thread's frames can be
// followed from there. The unwinder believes the tables of an instruction; so it must not be used
// where the stack pointer is not that of the instruction's function.
#pragma once

#include <motet/detail/base/abi.hpp>
#include <motet/detail/platform/stack.hpp>
#include <span>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Whether this is an instruction of a switch at which the stack pointer is the next context's
/// already, and the function still that of the last context. In context/<architecture>.cpp, beside
/// the assembly.
bool ends_switch(const void* instruction) noexcept;

class signal_frame {
 public:
  /// `context` is the third argument of a handler with SA_SIGINFO.
  explicit signal_frame(const void* context) noexcept;

  void* instruction() const noexcept { return instruction_; }

  /// `current_stack` is the stack of the fiber that the thread records as running. `throws`: an
  /// exception of that fiber is in flight; the unwinder then restores the registers of one function
  /// in the frame of another.
  /// Returns: why the frames cannot be followed; null if they can.
  const char* doubt(const stack& current_stack, bool throws) const noexcept;

  /// Stores the addresses of the interrupted frames, the innermost first, in `buffer`. Call it in
  /// the handler, whose own frames are skipped, and only if doubt() is null. Where the unwinder has
  /// no tables, such as in assembly or in an entry of a linkage table, the stack is searched.
  std::span<void*> frames(const stack& current_stack, std::span<void*> buffer) const noexcept;

 private:
  void* instruction_ = nullptr;
  const std::byte* stack_pointer_ = nullptr;
};

}}}  // namespace motet::MOTET_ABI::detail
