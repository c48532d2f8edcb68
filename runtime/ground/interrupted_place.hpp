// SPDX-License-Identifier: MIT
// Where a signal has met a thread, and whether its frames can be followed from there. The unwinder
// believes what it is told of an instruction; so it must not be asked where the stack is not that
// of the instruction's function.
#pragma once

#include <motet/detail/ground/stack.hpp>
#include <motet/detail/words/abi.hpp>
#include <span>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Whether, at this instruction of a switch, the stack pointer is the next context's already, and
/// the function is still that of the last one. In context/<architecture>.cpp, beside the assembly.
bool ends_switch(const void* instruction) noexcept;

class interrupted_place {
 public:
  /// `context` is what a handler with SA_SIGINFO gets.
  explicit interrupted_place(const void* context) noexcept;

  void* instruction() const noexcept { return instruction_; }

  /// `running` is the stack of the fiber that runs by the thread's own account, and `throws`
  /// whether an exception of that fiber is in flight: while the unwinder works on its way, it
  /// restores the registers of one function in the frame of another. Returns: why the frames cannot
  /// be followed; null if they can.
  const char* doubt(const stack& running, bool throws) const noexcept;

  /// Puts the addresses of its frames, the innermost first, into `room`. In the handler itself,
  /// whose own frames are left out; there must be no doubt.
  std::span<void*> frames(std::span<void*> room) const noexcept;

 private:
  void* instruction_ = nullptr;
  const std::byte* stack_pointer_ = nullptr;
};

}}}  // namespace motet::MOTET_ABI::detail
