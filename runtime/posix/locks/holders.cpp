// SPDX-License-Identifier: MIT
// See posix/locks/holders.hpp. The table is a hash table with linear probing in memory of its own:
// an allocator may be the caller.
#include "posix/locks/holders.hpp"

#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <exception>
#include <string>
#include <utility>

#include "core/store/fiber_store.hpp"
#include "core/time/park_until.hpp"
#include "unhandled/notice.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

held_lock* map_table(std::size_t capacity) noexcept {
  void* const memory = ::mmap(nullptr, capacity * sizeof(held_lock), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<held_lock*>(memory);
}

/// Returns: where a call was made, as "function+offset in file".
std::string text_of(const void* site) {
  Dl_info info{};
  if (::dladdr(site, &info) == 0 || info.dli_fname == nullptr) return "an unknown place";
  const auto distance_from = [&](const void* start) {
    return std::to_string(static_cast<const char*>(site) - static_cast<const char*>(start));
  };
  if (info.dli_sname == nullptr) return info.dli_fname + ("+" + distance_from(info.dli_fbase));
  return info.dli_sname + ("+" + distance_from(info.dli_saddr)) + " in " + info.dli_fname;
}

std::string text_of(const held_lock& entry) {
  const bool lives = entry.fiber->id == entry.id;
  const std::string holder = lives ? "fiber " + label_of(*entry.fiber) : "a fiber that has ended";
  return holder + " holds it, locked at " + text_of(entry.site);
}

}  // namespace

lock_waiter::lock_waiter(const char* call, const void* lock) noexcept
    : address(lock), wait(call, std::bit_cast<std::int64_t>(lock), wait_kind::object) {
  wait.interruptible = false;
}

thread_local constinit lock_holders* lock_holders::present_ = nullptr;

namespace {

/// Whether the thread's table has been freed; destructors of other variables may still lock.
thread_local constinit bool is_over = false;

}  // namespace

lock_holders* lock_holders::make_present() noexcept {
  if (is_over) return nullptr;
  static thread_local lock_holders holders;
  if (holders.capacity_ != 0) present_ = &holders;
  return present_;
}

lock_holders::~lock_holders() {
  present_ = nullptr;
  is_over = true;
  if (entries_ != nullptr) ::munmap(entries_, capacity_ * sizeof(held_lock));
}

/// Half of the table stays free.
bool lock_holders::grow() noexcept {
  const std::size_t capacity = capacity_ == 0 ? first_capacity : 2 * capacity_;
  held_lock* const table = map_table(capacity);
  if (table == nullptr) return false;
  held_lock* const old = std::exchange(entries_, table);
  const std::size_t old_capacity = std::exchange(capacity_, capacity);
  for (std::size_t i = 0; i < old_capacity; ++i) {
    if (old[i].address != nullptr) entries_[place_of(old[i].address)] = old[i];
  }
  if (old != nullptr) ::munmap(old, old_capacity * sizeof(held_lock));
  return true;
}

/// Without memory for a larger table, a lock that does not fit is not noted: a fiber that waits for
/// it blocks the thread.
void lock_holders::note(held_lock& entry, const void* address, const control_block& fiber,
                        const void* site) noexcept {
  held_lock* place = &entry;
  if (entry.address == nullptr) {
    if (2 * count_ >= capacity_ && !grow() && count_ + 1 >= capacity_) return;
    place = &entry_of(address);
    *place = {address, nullptr, 0, nullptr, 0};
    ++count_;
  }
  place->fiber = &fiber;
  place->id = fiber.id;
  place->site = site;
  ++place->depth;
}

/// The entries behind it may belong to an earlier place.
void lock_holders::erase(std::size_t place) noexcept {
  entries_[place] = {};
  --count_;
  for (std::size_t next = (place + 1) & (capacity_ - 1); entries_[next].address != nullptr;
       next = (next + 1) & (capacity_ - 1)) {
    const held_lock entry = std::exchange(entries_[next], held_lock{});
    entries_[place_of(entry.address)] = entry;
  }
}

void lock_holders::remove(held_lock& entry, thread_state& home) noexcept {
  const void* const address = entry.address;
  if (--entry.depth == 0) erase(static_cast<std::size_t>(&entry - entries_));
  if (!waiters_.empty()) wake(address, home);
}

void lock_holders::wake(const void* address, thread_state& home) noexcept {
  for (auto* waiter = waiters_.front(); waiter != nullptr; waiter = waiters_.next(*waiter)) {
    if (waiter->address == address) home.resume(waiter->wait, wake_reason::handed);
  }
}

bool lock_holders::leads_to(const control_block& fiber, const held_lock& first) noexcept {
  const held_lock* entry = &first;
  for (std::size_t i = 0; entry != nullptr && i <= count_; ++i) {
    if (entry->is_of(fiber)) return true;
    const held_lock* next = nullptr;
    for (auto* waiter = waiters_.front(); waiter != nullptr; waiter = waiters_.next(*waiter)) {
      if (waiter->wait.fiber != nullptr && entry->is_of(*waiter->wait.fiber))
        next = &entry_of(waiter->address);
    }
    entry = next != nullptr && next->address != nullptr ? next : nullptr;
  }
  return false;
}

/// Another thread may unlock it.
void lock_holders::await(const void* address, const char* call, clock::time_point due,
                         thread_state& home) noexcept {
  constexpr auto longest_pause = std::chrono::milliseconds(50);
  lock_waiter waiter(call, address);
  waiters_.push_back(waiter);
  park_until(home, waiter.wait, std::min(due, home.time.after(longest_pause)));
  waiter.unlink();
}

void report_lock(thread_state& home, const char* rule, const held_lock& entry, const char* call,
                 const void* site) noexcept {
  try {
    notice(home.settings(), std::string(rule) + ": fiber " + label_of(home.running()) +
                                " waits in " + call + "() at " + text_of(site) + "; " +
                                text_of(entry));
  } catch (const std::exception&) {
    notice(home.settings(), rule);
  }
}

}}}  // namespace motet::MOTET_ABI::detail
