// SPDX-License-Identifier: MIT
// See platform/frames/return_addresses.hpp. Source: Intel SDM, 3.2, CALL; Arm ARM, BL and BLR.
#include "platform/frames/return_addresses.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "platform/frames/peek.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// Whether the instruction before `address` is a call.
bool is_behind_a_call(std::uintptr_t address) noexcept {
#if defined(__x86_64__)
  std::array<unsigned char, 7> code{};
  if (!peek(reinterpret_cast<decltype(code)*>(address - code.size()), code)) return false;
  if (code[2] == 0xe8) return true;                        // with a distance
  for (const std::size_t length : {2U, 3U, 4U, 6U, 7U}) {  // through a register or memory
    const std::size_t position = code.size() - length;
    if (code[position] == 0xff && (code[position + 1] & 0x38) == 0x10) return true;
  }
  return false;
#else
  std::uint32_t code = 0;
  if (!peek(reinterpret_cast<std::uint32_t*>(address - 4), code)) return false;
  return (code & 0xfc000000) == 0x94000000 || (code & 0xfffffc1f) == 0xd63f0000;
#endif
}

bool is_return_address(std::uintptr_t word) noexcept {
  dl_find_object object{};
  return word > 4096 && ::_dl_find_object(reinterpret_cast<void*>(word), &object) == 0 &&
         is_behind_a_call(word);
}

}  // namespace

std::span<const std::uintptr_t> read_stack(std::uintptr_t stack_pointer, const void* top,
                                           std::span<std::uintptr_t> buffer) noexcept {
  std::size_t count =
      peek_bytes(reinterpret_cast<void*>(stack_pointer), std::as_writable_bytes(buffer)) /
      sizeof stack_pointer;
  if (top != nullptr) {
    const auto remaining = reinterpret_cast<std::uintptr_t>(top) - stack_pointer;
    count = std::min<std::size_t>(count, remaining / sizeof stack_pointer);
  }
  return buffer.first(count);
}

std::span<void*> return_addresses(void* instruction, std::span<const std::uintptr_t> words,
                                  std::span<void*> buffer) noexcept {
  buffer[0] = instruction;
  std::size_t size = 1;
  for (const std::uintptr_t word : words) {
    if (size == buffer.size()) break;
    if (is_return_address(word)) buffer[size++] = reinterpret_cast<void*>(word);
  }
  return buffer.first(size);
}

}}}  // namespace motet::MOTET_ABI::detail
