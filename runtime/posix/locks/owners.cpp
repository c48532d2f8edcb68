// SPDX-License-Identifier: MIT
// See posix/locks/owners.hpp. The table is freed by a destructor of pthread_key_create(3): fibers
// may still run, and lock, after destructors of thread-local variables, at the end of a thread and
// in exit(3).
#include "posix/locks/owners.hpp"

#include <pthread.h>
#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

constexpr std::size_t first_capacity = 256;

void* map(std::size_t size) noexcept {
  void* const memory =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

thread_local constinit lock_owners* lock_owners::present_ = nullptr;

lock_owners* lock_owners::make_present() noexcept {
  static const pthread_key_t key = [] {
    pthread_key_t fresh{};
    ::pthread_key_create(&fresh, [](void* owners) { destroy(owners); });
    return fresh;
  }();
  void* const memory = map(sizeof(lock_owners));
  if (memory == nullptr) return nullptr;
  auto* const owners = ::new (memory) lock_owners;
  if (!owners->grow()) {
    ::munmap(memory, sizeof(lock_owners));
    return nullptr;
  }
  ::pthread_setspecific(key, owners);
  return present_ = owners;
}

void lock_owners::destroy(void* owners) noexcept {
  const lock_owners& ended = *static_cast<lock_owners*>(owners);
  present_ = nullptr;
  ::munmap(ended.entries_, ended.capacity_ * sizeof(entry));
  ::munmap(owners, sizeof(lock_owners));
}

/// Returns: the place of the lock, or the free one where it would be.
std::size_t lock_owners::place_of(const void* address) const noexcept {
  constexpr std::uint64_t factor = 0x9e3779b97f4a7c15;
  const std::uint64_t hash = reinterpret_cast<std::uintptr_t>(address) * factor;
  std::size_t place = (hash >> 32) & (capacity_ - 1);
  while (entries_[place].address != nullptr && entries_[place].address != address)
    place = (place + 1) & (capacity_ - 1);
  return place;
}

/// Half of the table stays free.
bool lock_owners::grow() noexcept {
  const std::size_t capacity = capacity_ == 0 ? first_capacity : 2 * capacity_;
  auto* const table = static_cast<entry*>(map(capacity * sizeof(entry)));
  if (table == nullptr) return false;
  const entry* const old = std::exchange(entries_, table);
  const std::size_t old_capacity = std::exchange(capacity_, capacity);
  for (std::size_t i = 0; i < old_capacity; ++i) {
    if (old[i].address != nullptr) entries_[place_of(old[i].address)] = old[i];
  }
  if (old != nullptr) ::munmap(const_cast<entry*>(old), old_capacity * sizeof(entry));
  return true;
}

/// Without memory for a larger table, an owner that does not fit is not known.
void lock_owners::set(const void* address, std::uint64_t fiber) noexcept {
  std::size_t place = place_of(address);
  if (entries_[place].address == nullptr) {
    if (2 * count_ >= capacity_ && !grow() && count_ + 1 >= capacity_) return;
    place = place_of(address);
    ++count_;
  }
  entries_[place] = {address, fiber};
}

/// The entries behind it may belong to an earlier place.
void lock_owners::forget(const void* address) noexcept {
  const std::size_t place = place_of(address);
  if (entries_[place].address == nullptr) return;
  entries_[place] = {};
  --count_;
  for (std::size_t next = (place + 1) & (capacity_ - 1); entries_[next].address != nullptr;
       next = (next + 1) & (capacity_ - 1)) {
    const entry moved = std::exchange(entries_[next], entry{});
    entries_[place_of(moved.address)] = moved;
  }
}

}}}  // namespace motet::MOTET_ABI::detail
