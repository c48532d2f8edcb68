// SPDX-License-Identifier: MIT
// See platform/stack_pool.hpp.
#include "platform/stack_pool.hpp"

#include <pthread.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <motet/base/errors.hpp>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/disabled.hpp"
#include "base/faults.hpp"
#include "platform/guard.hpp"
#include "platform/valgrind.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

constexpr const char* no_memory = "no memory, or no address space, for another fiber's stack";

std::byte* map(std::size_t size) {
  void* memory = faults::call("mmap", ::mmap, nullptr, size, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) throw stack_unavailable(no_memory);
  ::madvise(memory, size, MADV_NOHUGEPAGE);  // advice: huge pages would make every stack resident
  return static_cast<std::byte*>(memory);
}

std::size_t smallest_size() {
  return static_cast<std::size_t>(::getauxval(AT_MINSIGSTKSZ)) + std::size_t{16} * 1024;
}

/// The tops of consecutive stacks differ by 64 bytes in their place in the cache, or the busiest
/// lines of all stacks would share a handful of cache sets. 16 such places leave a parked fiber on
/// one page.
std::size_t colour(std::size_t index) {
  return index % 16 * 64;
}

constexpr std::size_t room_for_note = 64;

/// Returns: the end of the mapping of a stack, which is a multiple of the stride long.
std::byte* end_of(const stack& one) {
  std::byte* base = one.bottom - stack_pool::guard;
  const auto size = static_cast<std::size_t>(one.top - base);
  return base + (size + stack_pool::stride - 1) / stack_pool::stride * stack_pool::stride;
}

}  // namespace

stack_pool::note& stack_pool::note_of(const stack& noted) noexcept {
  return *reinterpret_cast<note*>(end_of(noted) - sizeof(note));
}

/// Locked memory is resident at once: then a slab holds few stacks.
stack_pool::stack_pool()
    : stacks_in_slab_(memory_is_locked() ? 16 : 1024),
      guards_are_early_(best_guard() == guard_kind::protection) {
  constexpr std::size_t sealed_stacks = 1024;
  if (disabled("stack_reuse")) quarantine_.resize(sealed_stacks);
}

stack_pool::~stack_pool() {
  if (valgrind::watches()) {
    for (std::size_t i = 0; i < free_count_; ++i)
      valgrind::forget_stack(note_of({free_[i].bottom, free_[i].top}).known_as);
  }
  for (std::byte* each : slabs_) ::munmap(each, stacks_in_slab_ * stride);
  give_mappings_back(mappings_);
}

void stack_pool::check_size(std::size_t size) {
  if (size < smallest_size() || size > largest_size) {
    throw std::invalid_argument("the stack size must be " + std::to_string(smallest_size()) +
                                " to " + std::to_string(largest_size) + " bytes, not " +
                                std::to_string(size));
  }
}

void stack_pool::make_room(std::size_t count) {
  if (count <= room_) return;
  auto larger = std::make_unique_for_overwrite<free_stack[]>(2 * count);
  std::copy_n(free_.get(), free_count_, larger.get());
  free_ = std::move(larger);
  room_ = 2 * count;
}

void stack_pool::map_slab() {
  make_room(mapped_ + stacks_in_slab_);
  slabs_.reserve(slabs_.size() + 1);
  slabs_.push_back(map(stacks_in_slab_ * stride));
  mapped_ += stacks_in_slab_;
}

/// Guards that need no mappings of their own are made when a fiber begins. What could run out of
/// mappings is guarded when the stack is promised.
std::size_t stack_pool::ready() const noexcept {
  return (guards_are_early_ ? guarded_ : mapped_) - handed_out_;
}

void stack_pool::make_more() {
  do {
    const std::size_t before = ready();
    if (!guards_are_early_ || guarded_ == mapped_) map_slab();
    if (guards_are_early_) guard_some();
    unpromised_ += static_cast<std::ptrdiff_t>(ready() - before);
  } while (unpromised_ <= 0);
}

/// After the process has locked its memory, the kernel refuses guards that need no
/// mapping: later promises then make up for stacks that were promised but have no guard
/// yet.
void stack_pool::guard_early() noexcept {
  const std::size_t before = ready();
  guards_are_early_ = true;
  unpromised_ -= static_cast<std::ptrdiff_t>(before - ready());
}

std::byte* stack_pool::place(std::size_t index) const noexcept {
  return slabs_[index / stacks_in_slab_] + index % stacks_in_slab_ * stride;
}

/// Installs guards in batches, because one call serves many; one at a time if each needs a mapping.
void stack_pool::guard_some() {
  const std::size_t most = best_guard() == guard_kind::protection ? 1 : 32;
  const std::size_t some = std::min(most, stacks_in_slab_ - guarded_ % stacks_in_slab_);
  const std::size_t taken = install_guards(place(guarded_), stride, some, guard);
  mappings_ += taken;
  guarded_ += some;
  if (taken > 0 && !guards_are_early_) guard_early();
}

/// The kernel may lack memory for its tables just now. The fiber has been promised a stack: so, as
/// for any page that it touches, the thread waits for memory.
void stack_pool::guard_some_surely() noexcept {
  constexpr int most_tries = 10'000;
  for (int tries = 0; tries < most_tries; ++tries) {
    try {
      guard_some();
      return;
    } catch (const std::bad_alloc&) {  // stack_unavailable included
      constexpr timespec a_moment{0, 1'000'000};
      ::nanosleep(&a_moment, nullptr);
    }
  }
  std::fputs("motet: for ten seconds the kernel has refused a guard for a fiber's stack\n", stderr);
  std::abort();
}

stack stack_pool::take_large(std::size_t size) {
  const std::size_t strides = (size + colour(15) + room_for_note + guard + stride - 1) / stride;
  std::byte* base = map(strides * stride);
  const stack made{base + guard, base + strides * stride - colour(next_colour_++) - room_for_note};
  try {
    const std::size_t mappings = install_guards(base, stride, 1, guard);
    ::new (&note_of(made)) note{valgrind::know_stack(made), mappings};
  } catch (...) {
    ::munmap(base, strides * stride);
    throw;
  }
  return made;
}

stack stack_pool::take_fresh() noexcept {
  if (handed_out_ == guarded_) guard_some_surely();
  std::byte* base = place(handed_out_++);
  const stack made{base + guard, base + stride - colour(next_colour_++) - room_for_note};
  if (valgrind::watches()) ::new (&note_of(made)) note{valgrind::know_stack(made), 0};
  return made;
}

void stack_pool::unmap_large(const stack& used) noexcept {
  const note noted = note_of(used);
  valgrind::forget_stack(noted.known_as);
  ::munmap(used.bottom - guard, static_cast<std::size_t>(end_of(used) - used.bottom) + guard);
  give_mappings_back(noted.mappings);
}

void stack_pool::put_into_quarantine(const stack& used) noexcept {
  sealed& place = quarantine_[oldest_++ % quarantine_.size()];
  const sealed released = place;
  place = {used, note_of(used)};
  seal(used.bottom, stride - guard);
  if (released.one.bottom == nullptr) return;
  unseal(released.one.bottom, stride - guard);
  note_of(released.one) = released.noted;
  put(released.one);
}

bool stack_pool::trim_some() noexcept {
  for (int some = 0; some < 64 && can_trim(); ++some) {
    const stack coldest{free_[returned_].bottom, free_[returned_].top};
    ++returned_;
    const note noted = note_of(coldest);
    ::madvise(coldest.bottom, stride - guard, MADV_DONTNEED);
    if (noted.known_as != 0) note_of(coldest) = noted;
  }
  return can_trim();
}

stack this_threads_stack() noexcept {
  stack all;
  pthread_attr_t attributes;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return all;
  void* bottom = nullptr;
  std::size_t size = 0;
  ::pthread_attr_getstack(&attributes, &bottom, &size);
  ::pthread_attr_destroy(&attributes);
  all.bottom = static_cast<std::byte*>(bottom);
  all.top = all.bottom + size;
  return all;
}

}}}  // namespace motet::MOTET_ABI::detail
