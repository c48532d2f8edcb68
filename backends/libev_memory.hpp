// SPDX-License-Identifier: MIT
// libev ends the process if its allocator fails. So the allocator falls back to a reserve, and
// while the reserve is not whole a backend starts no operation: the operation fails with ENOMEM.
#pragma once

#include <ev.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <motet/detail/base/abi.hpp>
#include <mutex>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Belongs to one loop, on its thread. An operation makes libev grow each of several tables at most
/// once: to twice its size, or to the size for the descriptor.
class libev_memory {
 public:
  libev_memory() noexcept {
    static std::once_flag once;
    std::call_once(once, [] { ::ev_set_allocator(&allocate); });
    outer_ = std::exchange(innermost, this);
  }
  libev_memory(const libev_memory&) = delete;
  libev_memory& operator=(const libev_memory&) = delete;
  /// The loop has been destroyed before.
  ~libev_memory() {
    if (innermost == this) innermost = outer_;
    for (void* block : blocks_) std::free(block);
  }

  /// Returns: whether libev can grow without failing, also for a watcher of the descriptor.
  bool suffices_for(int fd) noexcept {
    if (fd > largest_fd_) [[unlikely]] {
      largest_fd_ = fd;
      note_size(bytes_per_descriptor * (static_cast<std::size_t>(fd) + 1));
    }
    return whole_ || refill();
  }

 private:
  static constexpr std::size_t tables = 6;
  static constexpr std::size_t least = 4096;
  static constexpr std::size_t bytes_per_descriptor = 32;  // at most, in libev's table of them

  bool refill() noexcept {
    const std::size_t capacity = std::max(least, 2 * largest_);
    for (void*& entry : blocks_) {
      if (entry != nullptr && size_ >= capacity) continue;
      void* block = std::malloc(capacity);
      if (block == nullptr) return false;
      std::free(std::exchange(entry, block));
    }
    size_ = capacity;
    return whole_ = true;
  }

  /// Returns: null if the reserve is used up, or another thread's.
  void* take(std::size_t size) noexcept {
    whole_ = false;
    for (void*& block : blocks_) {
      if (block != nullptr && ::malloc_usable_size(block) >= size)
        return std::exchange(block, nullptr);
    }
    return nullptr;
  }

  void note_size(std::size_t size) noexcept {
    if (size <= largest_) return;
    largest_ = size;
    whole_ = whole_ && 2 * largest_ <= size_;
  }

  /// Source: libev's manual, ev_set_allocator: as realloc(3), and frees for a size of 0.
  static void* allocate(void* block, long size) noexcept {
    const auto capacity = static_cast<std::size_t>(size);
    if (capacity == 0) {
      std::free(block);
      return nullptr;
    }
    if (innermost != nullptr) innermost->note_size(capacity);
    if (void* larger = std::realloc(block, capacity)) return larger;
    void* spare = innermost == nullptr ? nullptr : innermost->take(capacity);
    if (spare == nullptr || block == nullptr) return spare;
    std::memcpy(spare, block, std::min(::malloc_usable_size(block), capacity));
    std::free(block);
    return spare;
  }

  static inline thread_local libev_memory* innermost = nullptr;

  std::array<void*, tables> blocks_{};
  libev_memory* outer_ = nullptr;  // of another loop of the thread
  std::size_t size_ = 0;           // of each block
  std::size_t largest_ = 0;        // table so far
  int largest_fd_ = -1;
  bool whole_ = false;
};

}}}  // namespace motet::MOTET_ABI::detail
