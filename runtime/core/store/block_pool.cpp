// SPDX-License-Identifier: MIT
// See core/store/block_pool.hpp.
#include "core/store/block_pool.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <motet/base/errors.hpp>
#include <new>

#include "base/faults.hpp"
#include "platform/spare_mappings.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// At most this many blocks of a kept slab stay resident; a thread with more fibers gets memory for
/// `many` at a time.
constexpr std::size_t few = 16;
constexpr std::size_t many = 128;

}  // namespace

struct block_pool::slab {
  slab* next = nullptr;
  std::atomic<std::size_t> used{0};  // from leave() on
  std::size_t touched = 0;           // blocks that have been handed out, ever
  std::size_t backed = few;          // those that cause no more page faults, except the first few

  std::byte* place(std::size_t index) noexcept {
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
  auto* from = static_cast<std::byte*>(memory);
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(from) & (size - 1);
  if (before > 0) ::munmap(from, before);
  if (before < size) ::munmap(from + before + size, size - before);
  ::madvise(from + before, size, MADV_NOHUGEPAGE);  // advice: it would make cold parts resident
  return from + before;
}

/// One call instead of a page fault for every 16 blocks. Advice, for what the kernel refuses is
/// made resident by its first use. Source: madvise(2), Linux 5.14.
void make_resident(std::byte* from, std::byte* to) noexcept {
  constexpr int populate_write = 23;
  constexpr std::uintptr_t page = 4096;
  const auto up = [](std::byte* at) {
    return at + (-reinterpret_cast<std::uintptr_t>(at) & (page - 1));
  };
  from = up(from);
  if (from < up(to)) ::madvise(from, static_cast<std::size_t>(up(to) - from), populate_write);
}

}  // namespace

static_assert(block_slab::remote + block_slab::remote_room * block_slab::blocks +
                  sizeof(control_block) * block_slab::blocks + block_slab::first <=
              block_slab::size);

void block_pool::leave() noexcept {
  for (slab* each = slabs_; each != nullptr; each = each->next) each->used = each->touched;
  while (unused_block* unused = free_) {
    sanitizer::unpoison(unused, sizeof *unused);
    free_ = unused->next;
    --slab_of(unused).used;
  }
  while (slab* each = slabs_) {
    slabs_ = each->next;
    if (each->used == 0) unmap(*each);
  }
}

void block_pool::abandon(control_block& main_block) noexcept {
  // The slab's other blocks go under the locks of other mailboxes, so the slab never becomes empty.
  slab_of(&main_block).used = std::numeric_limits<std::size_t>::max() / 2;
  free_ = nullptr;
  slabs_ = nullptr;
  made_ = 1;
}

block_pool::slab& block_pool::slab_of(void* block) noexcept {
  return *reinterpret_cast<slab*>(block_slab::base_of(block));
}

void block_pool::unmap(slab& unused) noexcept {
  sanitizer::search_no_more(&unused, block_slab::size);
  sanitizer::unpoison(&unused, block_slab::size);
  if (unused.touched <= few && spares.keep(&unused)) return;
  ::munmap(&unused, block_slab::size);
}

void block_pool::map_slab() {
  void* memory = spares.take();
  auto* made = ::new (memory != nullptr ? memory : map_aligned(block_slab::size)) slab;
  sanitizer::search(made, block_slab::size);
  made->next = slabs_;
  slabs_ = made;
}

void block_pool::back_more(slab& growing) noexcept {
  const std::size_t from = growing.backed;
  growing.backed = std::min(from + many, block_slab::blocks);
  make_resident(growing.place(from), growing.place(growing.backed));
}

void* block_pool::take_new() {
  if (slabs_ == nullptr || slabs_->touched == block_slab::blocks) map_slab();
  if (slabs_->touched == slabs_->backed) back_more(*slabs_);
  ++made_;
  return slabs_->place(slabs_->touched++);
}

void block_pool::put_after_end(control_block& block) noexcept {
  slab& from = slab_of(&block);
  if (--from.used == 0) unmap(from);
}

}}}  // namespace motet::MOTET_ABI::detail
