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
#include "base/system_calls.hpp"
#include "platform/guard.hpp"
#include "platform/spare_mappings.hpp"
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

constexpr std::size_t note_size = 64;

/// Returns: the end of the mapping of a stack, which is a multiple of the stride long.
std::byte* end_of(const stack& memory) {
  std::byte* base = memory.bottom - stack_pool::guard;
  const auto size = static_cast<std::size_t>(memory.top - base);
  return base + (size + stack_pool::stride - 1) / stack_pool::stride * stack_pool::stride;
}

/// A slab of a pool that has ended serves the next pool, with its guards: to map and to guard one
/// takes longer than a small program of fibers. Its stacks keep their memory, so few were used; and
/// address space is limited as well.
constexpr std::size_t usual_stacks_in_slab = 1024;
constexpr std::size_t most_guards_of_spare = 32;
constinit spare_mappings<2> spare_slabs;

/// Whether a pool's slabs are like those of other pools.
bool shares_slabs(std::size_t stacks_in_slab, bool guards_are_early, bool has_quarantine) {
  return stacks_in_slab == usual_stacks_in_slab && !guards_are_early && !has_quarantine &&
         !valgrind::is_active();
}

/// How many stacks of a spare slab have guards: above the top of its first stack.
std::size_t& guards_of_spare(std::byte* slab) noexcept {
  return *reinterpret_cast<std::size_t*>(slab + stack_pool::stride - note_size);
}

}  // namespace

stack_pool::note& stack_pool::note_of(const stack& memory) noexcept {
  return *reinterpret_cast<note*>(end_of(memory) - sizeof(note));
}

/// Locked memory is resident at once: then a slab holds few stacks.
stack_pool::stack_pool()
    : stacks_in_slab_(memory_is_locked() ? 16 : usual_stacks_in_slab),
      guards_are_early_(best_guard() == guard_kind::protection) {
  constexpr std::size_t sealed_stacks = 1024;
  if (disabled("stack_reuse")) quarantine_.resize(sealed_stacks);
}

stack_pool::~stack_pool() {
  if (valgrind::is_active()) {
    for (std::size_t i = 0; i < free_count_; ++i)
      valgrind::forget_stack(note_of({free_[i].bottom, free_[i].top}).known_as);
  }
  const bool is_small = slabs_.size() == 1 && guarded_count_ <= most_guards_of_spare;
  if (is_small && shares_slabs(stacks_in_slab_, guards_are_early_, !quarantine_.empty())) {
    ::new (&guards_of_spare(slabs_.front())) std::size_t(guarded_count_);
    if (spare_slabs.put(slabs_.front())) slabs_.clear();
  }
  for (std::byte* slab : slabs_) ::munmap(slab, stacks_in_slab_ * stride);
  give_mappings_back(mappings_);
}

void stack_pool::check_size(std::size_t size) {
  if (size < smallest_size() || size > largest_size) {
    throw std::invalid_argument("the stack size must be " + std::to_string(smallest_size()) +
                                " to " + std::to_string(largest_size) + " bytes, not " +
                                std::to_string(size));
  }
}

void stack_pool::reserve(std::size_t count) {
  if (count <= capacity_) return;
  auto larger = std::make_unique_for_overwrite<free_stack[]>(2 * count);
  std::copy_n(free_.get(), free_count_, larger.get());
  free_ = std::move(larger);
  capacity_ = 2 * count;
}

void stack_pool::map_slab() {
  reserve(mapped_count_ + stacks_in_slab_);
  slabs_.reserve(slabs_.size() + 1);
  const bool shares = shares_slabs(stacks_in_slab_, guards_are_early_, !quarantine_.empty());
  void* const spare = slabs_.empty() && shares ? spare_slabs.take() : nullptr;
  slabs_.push_back(spare != nullptr ? static_cast<std::byte*>(spare)
                                    : map(stacks_in_slab_ * stride));
  if (spare != nullptr) guarded_count_ = guards_of_spare(slabs_.front());
  mapped_count_ += stacks_in_slab_;
}

/// Guards that need no mappings of their own are made when a fiber begins. What could run out of
/// mappings is guarded when the stack is promised.
std::size_t stack_pool::ready() const noexcept {
  return (guards_are_early_ ? guarded_count_ : mapped_count_) - handed_out_;
}

void stack_pool::make_more() {
  do {
    const std::size_t old_count = ready();
    if (!guards_are_early_ || guarded_count_ == mapped_count_) map_slab();
    if (guards_are_early_) guard_some();
    unpromised_count_ += static_cast<std::ptrdiff_t>(ready() - old_count);
  } while (unpromised_count_ <= 0);
}

/// After the process has locked its memory, the kernel refuses guards that need no
/// mapping: later promises then make up for stacks that were promised but have no guard
/// yet.
void stack_pool::guard_early() noexcept {
  const std::size_t old_count = ready();
  guards_are_early_ = true;
  unpromised_count_ -= static_cast<std::ptrdiff_t>(old_count - ready());
}

std::byte* stack_pool::stack_base(std::size_t index) const noexcept {
  return slabs_[index / stacks_in_slab_] + index % stacks_in_slab_ * stride;
}

/// Installs guards in batches, because one call serves many; one at a time if each needs a mapping.
void stack_pool::guard_some() {
  const std::size_t batch_limit = best_guard() == guard_kind::protection ? 1 : 32;
  const std::size_t batch =
      std::min(batch_limit, stacks_in_slab_ - guarded_count_ % stacks_in_slab_);
  const std::size_t guarded_count =
      install_guards(stack_base(guarded_count_), stride, batch, guard);
  mappings_ += guarded_count;
  guarded_count_ += batch;
  if (guarded_count > 0 && !guards_are_early_) guard_early();
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
      sys::nanosleep(&a_moment, nullptr);
    }
  }
  std::fputs("motet: for ten seconds the kernel has refused a guard for a fiber's stack\n", stderr);
  std::abort();
}

stack stack_pool::take_large(std::size_t size) {
  const std::size_t strides = (size + colour(15) + note_size + guard + stride - 1) / stride;
  std::byte* base = map(strides * stride);
  const stack result{base + guard, base + strides * stride - colour(next_colour_++) - note_size};
  try {
    const std::size_t mappings = install_guards(base, stride, 1, guard);
    ::new (&note_of(result)) note{valgrind::know_stack(result), mappings};
  } catch (...) {
    ::munmap(base, strides * stride);
    throw;
  }
  return result;
}

stack stack_pool::take_fresh() noexcept {
  if (handed_out_ == guarded_count_) guard_some_surely();
  std::byte* base = stack_base(handed_out_++);
  const stack result{base + guard, base + stride - colour(next_colour_++) - note_size};
  if (valgrind::is_active()) ::new (&note_of(result)) note{valgrind::know_stack(result), 0};
  return result;
}

void stack_pool::unmap_large(const stack& memory) noexcept {
  const note note_of_stack = note_of(memory);
  valgrind::forget_stack(note_of_stack.known_as);
  ::munmap(memory.bottom - guard, static_cast<std::size_t>(end_of(memory) - memory.bottom) + guard);
  give_mappings_back(note_of_stack.mappings);
}

void stack_pool::put_into_quarantine(const stack& memory) noexcept {
  sealed& slot = quarantine_[oldest_++ % quarantine_.size()];
  const sealed released = slot;
  slot = {memory, note_of(memory)};
  seal(memory.bottom, stride - guard);
  if (released.memory.bottom == nullptr) return;
  unseal(released.memory.bottom, stride - guard);
  note_of(released.memory) = released.note_of_stack;
  give_back_pooled(released.memory);
}

bool stack_pool::trim_some() noexcept {
  for (int batch = 0; batch < 64 && can_trim(); ++batch) {
    const stack coldest{free_[return_count_].bottom, free_[return_count_].top};
    ++return_count_;
    const note note_of_stack = note_of(coldest);
    ::madvise(coldest.bottom, stride - guard, MADV_DONTNEED);
    if (note_of_stack.known_as != 0) note_of(coldest) = note_of_stack;
  }
  return can_trim();
}

stack this_threads_stack() noexcept {
  stack mapping;
  pthread_attr_t attributes;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return mapping;
  void* bottom = nullptr;
  std::size_t size = 0;
  ::pthread_attr_getstack(&attributes, &bottom, &size);
  ::pthread_attr_destroy(&attributes);
  mapping.bottom = static_cast<std::byte*>(bottom);
  mapping.top = mapping.bottom + size;
  return mapping;
}

}}}  // namespace motet::MOTET_ABI::detail
