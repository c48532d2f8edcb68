// SPDX-License-Identifier: MIT
// See stack.hpp. A guard is a range that MADV_GUARD_INSTALL makes fault (no mapping of its own, so
// a million of them fit), or where the kernel lacks it (before 6.13) a range without access.
#include "stack.hpp"

#include <pthread.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <algorithm>
#include <motet/errors.hpp>
#include <stdexcept>
#include <string>

#include "sanitizers.hpp"

namespace motet::detail {

namespace {

constexpr int madv_guard_install = 102;  // linux/mman.h of 6.13; newer than Debian 12's headers
constexpr const char* no_mapping =
    "no memory or mapping for another fiber's stack (see the kernel's vm.max_map_count)";

std::byte* map(std::size_t size) {
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) throw stack_unavailable(no_mapping);
  ::madvise(memory, size, MADV_NOHUGEPAGE);  // advice: huge pages would make every stack resident
  return static_cast<std::byte*>(memory);
}

void install_guard(std::byte* from, std::size_t size) {
  if (::madvise(from, size, madv_guard_install) == 0) return;
  if (::mprotect(from, size, PROT_NONE) != 0) throw stack_unavailable(no_mapping);
}

std::size_t smallest_size() {
  return static_cast<std::size_t>(::getauxval(AT_MINSIGSTKSZ)) + std::size_t{16} * 1024;
}

/// Consecutive tops are 64 bytes apart in the cache, or the busiest lines of all stacks would share
/// a handful of cache sets; 16 of them leave a parked fiber on one page.
std::size_t colour(std::size_t index) {
  return index % 16 * 64;
}

stack known(std::byte* bottom, std::byte* top, bool pooled) noexcept {
  return {bottom, top, pooled, sanitizer::know_stack(bottom, top)};
}

}  // namespace

stack_pool::~stack_pool() {
  for (const stack& each : free_) sanitizer::forget_stack(each.known_as);
  for (std::byte* slab : slabs_) ::munmap(slab, stride * stacks_a_slab);
}

void stack_pool::check_size(std::size_t size) {
  if (size < smallest_size() || size > largest_size) {
    throw std::invalid_argument("a stack of " + std::to_string(size) + " bytes: must be " +
                                std::to_string(smallest_size()) + " to " +
                                std::to_string(largest_size));
  }
}

void stack_pool::map_slab() {
  free_.reserve((slabs_.size() + 1) * stacks_a_slab);
  slabs_.reserve(slabs_.size() + 1);
  slabs_.push_back(map(stride * stacks_a_slab));
  unguarded_ = stacks_a_slab;
}

stack stack_pool::take(std::size_t size) {
  const std::size_t colour_bytes = colour(next_colour_++);
  if (size > default_size) {
    const std::size_t strides = (size + colour(15) + guard + stride - 1) / stride;
    std::byte* base = map(strides * stride);
    try {
      install_guard(base, guard);
    } catch (...) {
      ::munmap(base, strides * stride);
      throw;
    }
    return known(base + guard, base + strides * stride - colour_bytes, false);
  }
  if (!free_.empty()) {
    const stack last = free_.back();
    free_.pop_back();
    return last;
  }
  if (unguarded_ == 0) map_slab();
  std::byte* base = slabs_.back() + (stacks_a_slab - unguarded_) * stride;
  install_guard(base, guard);
  --unguarded_;
  return known(base + guard, base + stride - colour_bytes, true);
}

void stack_pool::give_back(const stack& used) noexcept {
  if (used.pooled) {
    free_.push_back(used);
    return;
  }
  sanitizer::forget_stack(used.known_as);
  std::byte* base = used.bottom - guard;
  const std::size_t size = static_cast<std::size_t>(used.top - base);
  ::munmap(base, (size + stride - 1) / stride * stride);
}

stack this_threads_stack() noexcept {
  stack own;
  pthread_attr_t attributes;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return own;
  void* bottom = nullptr;
  std::size_t size = 0;
  ::pthread_attr_getstack(&attributes, &bottom, &size);
  ::pthread_attr_destroy(&attributes);
  own.bottom = static_cast<std::byte*>(bottom);
  own.top = own.bottom + size;
  return own;
}

}  // namespace motet::detail
