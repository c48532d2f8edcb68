// SPDX-License-Identifier: MIT
// The control blocks of a thread's fibers, in slabs. A block may outlive its thread; a slab goes
// with its last one.
#pragma once

#include <cstddef>
#include <motet/detail/core/cold_part.hpp>
#include <new>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class block_pool {
 public:
  block_pool() = default;
  block_pool(const block_pool&) = delete;
  block_pool& operator=(const block_pool&) = delete;
  ~block_pool() { retire(); }

  /// Whether a block has been put back that can be used again.
  bool has_used() const noexcept { return free_ != nullptr; }
  /// Returns: memory for a control_block.
  void* take_used() noexcept {
    void* memory = free_;
    sanitizer::unpoison(memory, sizeof(control_block));
    free_ = free_->next;
    return memory;
  }
  /// The same.
  /// Throws: stack_unavailable.
  [[gnu::noinline]] void* take_new();
  /// Returns: the number of blocks ever constructed.
  std::size_t count() const noexcept { return block_count_; }
  /// `block` has been destroyed.
  void put(control_block& block) noexcept {
    auto* entry = ::new (static_cast<void*>(&block)) unused_block{free_};
    sanitizer::poison(entry, sizeof(control_block));
    free_ = entry;
  }

  /// The thread ends. Under its mailbox's lock, like what follows.
  void retire() noexcept;
  /// As put(), for a block whose thread has ended.
  [[gnu::noinline]] static void put_after_end(control_block& block) noexcept;
  /// In a forked child: all blocks but `main_block` are the parent's; their slabs stay as they are.
  void abandon(control_block& main_block) noexcept;

 private:
  struct slab;
  struct unused_block {
    unused_block* next;
  };

  static slab& slab_of(void* block) noexcept;
  static void unmap(slab& entry) noexcept;
  void map_slab();
  static void back_more(slab& target) noexcept;

  unused_block* free_ = nullptr;  // last in, first out
  slab* slabs_ = nullptr;
  std::size_t block_count_ = 0;
};

}}}  // namespace motet::MOTET_ABI::detail
