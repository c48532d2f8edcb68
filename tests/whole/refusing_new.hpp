// SPDX-License-Identifier: MIT
// Allocations by operator new that a test refuses. Included once in a program, which defines the
// two functions. Not inline: g++ 12 would take the free(3) in the one for a mistake in the other.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace testing {

/// Called before each allocation.
bool refuses_new() noexcept;
bool refuses_nothrow_new() noexcept;

}  // namespace testing

[[gnu::noinline]] void* operator new(std::size_t size) {
  void* memory = testing::refuses_new() ? nullptr : std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto unit = static_cast<std::size_t>(alignment);
  void* memory =
      testing::refuses_new() ? nullptr : std::aligned_alloc(unit, (size + unit - 1) / unit * unit);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return testing::refuses_nothrow_new() ? nullptr : std::malloc(size == 0 ? 1 : size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
