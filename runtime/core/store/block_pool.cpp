// SPDX-License-Identifier: MIT
// See core/store/block_pool.hpp.
#include "core/store/block_pool.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <motet/base/errors.hpp>
#include <motet/detail/base/atomic.hpp>
#include <new>

#include "base/faults.hpp"
#include "platform/spare_mappings.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// At most this many blocks of a cached slab stay resident; a thread with more fibers gets memory
/// for `many` at a time.
constexpr std::size_t few = 16;
constexpr std::size_t many = 128;

}  // namespace

struct block_pool::slab {
  slab* next = nullptr;
  atomic<std::size_t> blocks_in_use{0};  // from retire() on
  std::size_t first_fresh = 0;           // blocks that have been handed out, ever
  std::size_t backed_count = few;  // those that cause no more page faults, except the first few

  std::byte* block_at(std::size_t index) noexcept {
    return reinterpret_cast<std::byte*>(this) + block_slab::first + index * sizeof(control_block);
  }
};

namespace {

/// Slabs of threads that had few fibers, as one has that a fiber only visits.
constinit spare_mappings spares;
constexpr const char* no_memory =
    "no memory, or no address space, for another fiber's control block";

/// Returns: `size` bytes at a multiple of `size`.
void* map_aligned(std::size_t size) {
  void* memory = faults::call("mmap", ::mmap, nullptr, 2 * size, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw stack_unavailable(no_memory);
  auto* start = static_cast<std::byte*>(memory);
  const std::size_t lead = -reinterpret_cast<std::uintptr_t>(start) & (size - 1);
  if (lead > 0) ::munmap(start, lead);
  if (lead < size) ::munmap(start + lead + size, size - lead);
  ::madvise(start + lead, size, MADV_NOHUGEPAGE);  // advice: it would make cold parts resident
  return start + lead;
}

/// One call instead of a page fault for every 16 blocks. Advice, for what the kernel refuses is
/// made resident by its first use. Source: madvise(2), Linux 5.14.
void make_resident(std::byte* begin, std::byte* end) noexcept {
  constexpr int populate_write = 23;
  constexpr std::uintptr_t page = 4096;
  const auto round_up = [](std::byte* address) {
    return address + (-reinterpret_cast<std::uintptr_t>(address) & (page - 1));
  };
  begin = round_up(begin);
  if (begin < round_up(end))
    ::madvise(begin, static_cast<std::size_t>(round_up(end) - begin), populate_write);
}

}  // namespace

static_assert(block_slab::remote + block_slab::remote_size * block_slab::blocks +
                  sizeof(control_block) * block_slab::blocks + block_slab::first <=
              block_slab::size);

void block_pool::retire() noexcept {
  // Other threads may have given blocks back already; the last one must not unmap a slab before it
  // is out of the list.
  for (slab* entry = slabs_; entry != nullptr; entry = entry->next)
    entry->blocks_in_use.fetch_add(entry->first_fresh + 1);
  while (unused_block* free_block = free_) {
    sanitizer::unpoison(free_block, sizeof *free_block);
    free_ = free_block->next;
    --slab_of(free_block).blocks_in_use;
  }
  while (slab* entry = slabs_) {
    slabs_ = entry->next;
    if (--entry->blocks_in_use == 0) unmap(*entry);
  }
}

void block_pool::abandon(control_block& main_block) noexcept {
  // The slab's other blocks go under the locks of other mailboxes, so the slab never becomes empty.
  slab_of(&main_block).blocks_in_use = std::numeric_limits<std::size_t>::max() / 2;
  free_ = nullptr;
  slabs_ = nullptr;
  block_count_ = 1;
}

block_pool::slab& block_pool::slab_of(void* block) noexcept {
  return *reinterpret_cast<slab*>(block_slab::base_of(block));
}

void block_pool::unmap(slab& block) noexcept {
  sanitizer::search_no_more(&block, block_slab::size);
  sanitizer::unpoison(&block, block_slab::size);
  if (block.first_fresh <= few && spares.put(&block)) return;
  ::munmap(&block, block_slab::size);
}

void block_pool::map_slab() {
  void* memory = spares.take();
  auto* fresh = ::new (memory != nullptr ? memory : map_aligned(block_slab::size)) slab;
  sanitizer::search(fresh, block_slab::size);
  fresh->next = slabs_;
  slabs_ = fresh;
}

void block_pool::back_more(slab& target) noexcept {
  const std::size_t old_count = target.backed_count;
  target.backed_count = std::min(old_count + many, block_slab::blocks);
  make_resident(target.block_at(old_count), target.block_at(target.backed_count));
}

void* block_pool::take_new() {
  if (slabs_ == nullptr || slabs_->first_fresh == block_slab::blocks) map_slab();
  if (slabs_->first_fresh == slabs_->backed_count) back_more(*slabs_);
  ++block_count_;
  return slabs_->block_at(slabs_->first_fresh++);
}

void block_pool::put_after_end(control_block& block) noexcept {
  slab& owner = slab_of(&block);
  if (--owner.blocks_in_use == 0) unmap(owner);
}

}}}  // namespace motet::MOTET_ABI::detail
