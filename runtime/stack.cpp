// SPDX-License-Identifier: MIT
// See stack.hpp.
#include "stack.hpp"

#include <pthread.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <algorithm>
#include <motet/errors.hpp>
#include <stdexcept>
#include <string>

#include "guard.hpp"
#include "sanitizers.hpp"

namespace motet::inline MOTET_ABI::detail {

namespace {

constexpr const char* no_memory = "no memory, or no address space, for another fiber's stack";

std::byte* map(std::size_t size) {
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) throw stack_unavailable(no_memory);
  ::madvise(memory, size, MADV_NOHUGEPAGE);  // advice: huge pages would make every stack resident
  return static_cast<std::byte*>(memory);
}

std::size_t smallest_size() {
  return static_cast<std::size_t>(::getauxval(AT_MINSIGSTKSZ)) + std::size_t{16} * 1024;
}

/// Consecutive tops are 64 bytes apart in the cache, or the busiest lines of all stacks would share
/// a handful of cache sets; 16 of them leave a parked fiber on one page.
std::size_t colour(std::size_t index) {
  return index % 16 * 64;
}

}  // namespace

stack_pool::~stack_pool() {
  for (const stack& each : free_) sanitizer::forget_stack(each.known_as);
  for (const slab& each : slabs_) ::munmap(each.base, each.stacks * stride);
  give_mappings_back(mappings_);
}

void stack_pool::check_size(std::size_t size) {
  if (size < smallest_size() || size > largest_size) {
    throw std::invalid_argument("a stack of " + std::to_string(size) + " bytes: must be " +
                                std::to_string(smallest_size()) + " to " +
                                std::to_string(largest_size));
  }
}

/// Locked memory is resident at once: then a slab holds few.
void stack_pool::map_slab() {
  const std::size_t stacks = memory_is_locked() ? 16 : 1024;
  free_.reserve(handed_out_ + stacks);
  slabs_.reserve(slabs_.size() + 1);
  slabs_.push_back({map(stacks * stride), stacks});
  fresh_ = slabs_.back().base;
  unguarded_ = stacks;
}

/// In batches, since one call serves many; where each takes mappings, one by one.
void stack_pool::guard_some() {
  if (unguarded_ == 0) map_slab();
  const std::size_t some =
      best_guard() == guard_kind::protection ? 1 : std::min<std::size_t>(unguarded_, 32);
  std::byte* next = fresh_ + guarded_ * stride;
  mappings_ += install_guards(next, stride, some, guard);
  guarded_ += some;
  unguarded_ -= some;
}

stack stack_pool::take_large(std::size_t size) {
  const std::size_t strides = (size + colour(15) + guard + stride - 1) / stride;
  std::byte* base = map(strides * stride);
  stack made{base + guard, base + strides * stride - colour(next_colour_++)};
  try {
    made.mappings = install_guards(base, stride, 1, guard);
  } catch (...) {
    ::munmap(base, strides * stride);
    throw;
  }
  made.known_as = sanitizer::know_stack(made.bottom, made.top);
  return made;
}

stack stack_pool::take(std::size_t size) {
  if (size > default_size) return take_large(size);
  if (!free_.empty()) {
    const stack last = free_.back();
    free_.pop_back();
    returned_ = std::min(returned_, free_.size());
    return last;
  }
  if (guarded_ == 0) guard_some();
  std::byte* base = fresh_;
  fresh_ += stride;
  --guarded_;
  ++handed_out_;
  stack made{base + guard, base + stride - colour(next_colour_++)};
  made.pooled = true;
  made.known_as = sanitizer::know_stack(made.bottom, made.top);
  return made;
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
  give_mappings_back(used.mappings);
}

bool stack_pool::trim() noexcept {
  for (int some = 0; some < 64 && returned_ + kept_warm < free_.size(); ++some) {
    const stack& coldest = free_[returned_++];
    ::madvise(coldest.bottom, stride - guard, MADV_DONTNEED);
  }
  return returned_ + kept_warm < free_.size();
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

}  // namespace motet::inline MOTET_ABI::detail
