// SPDX-License-Identifier: MIT
// See core/counting/stack_census.hpp. A table without locks, because a fork may find it half
// written. It keeps a copy of each file's name: the object that has the name may be unloaded.
#include "core/counting/stack_census.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <map>
#include <motet/detail/platform/sanitizers.hpp>
#include <string_view>
#include <utility>

#include "base/saved_errno.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

constexpr std::size_t page = 4096;

/// The first 256 places are counted.
struct place {
  std::atomic<std::uint64_t> key{0};  // 0: free
  std::atomic<bool> has_name{false};
  std::array<char, 128> file{};
  unsigned line = 0;
  std::atomic<std::uint64_t> samples{0};
  std::atomic<std::size_t> most{0};
};

constinit std::array<place, 256> places{};

/// Addresses of programs have 48 bits at most.
std::uint64_t key_of(const call_site& site) noexcept {
  return reinterpret_cast<std::uintptr_t>(site.file) | std::uint64_t{std::min(site.line, 0xffffU)}
                                                           << 48;
}

void set_name(place& entry, const call_site& site) noexcept {
  const std::string_view file = site.file == nullptr ? "" : site.file;
  const std::string_view end =
      file.substr(file.size() - std::min(file.size(), entry.file.size() - 1));
  std::copy(end.begin(), end.end(), entry.file.begin());
  entry.line = site.line;
  entry.has_name.store(true, std::memory_order_release);
}

/// Returns: null if the table is full.
place* find_or_add(const call_site& site) noexcept {
  const std::uint64_t key = key_of(site);
  if (key == 0) return nullptr;
  const std::size_t first = (key * 0x9e3779b97f4a7c15) >> 56;
  for (std::size_t i = 0; i < places.size(); ++i) {
    place& entry = places[(first + i) % places.size()];
    std::uint64_t present = entry.key.load(std::memory_order_relaxed);
    if (present == 0 &&
        entry.key.compare_exchange_strong(present, key, std::memory_order_relaxed)) {
      set_name(entry, site);
      return &entry;
    }
    if (present == key) return &entry;
  }
  return nullptr;
}

/// Returns: the end of the lowest part of `memory` of which no page is in memory; null if the
///          kernel does not tell.
std::byte* lowest_resident(const stack& memory) noexcept {
  std::array<unsigned char, 256> in_memory;
  for (std::byte* start = memory.bottom; start < memory.top; start += in_memory.size() * page) {
    const std::size_t pages =
        std::min(static_cast<std::size_t>(memory.top - start) / page, in_memory.size());
    if (::mincore(start, pages * page, in_memory.data()) != 0) return nullptr;
    const auto end = in_memory.begin() + static_cast<std::ptrdiff_t>(pages);
    const auto first =
        std::find_if(in_memory.begin(), end, [](unsigned char flags) { return (flags & 1) != 0; });
    if (first != end)
      return start + (first - in_memory.begin()) * static_cast<std::ptrdiff_t>(page);
  }
  return memory.top;
}

std::byte* floor_of_page(std::byte* address) noexcept {
  return address - reinterpret_cast<std::uintptr_t>(address) % page;
}

}  // namespace

/// The first distance is random as well, or short-lived threads would have no samples.
stack_sampling::stack_sampling() noexcept
    : random_(static_cast<std::uint32_t>(::gettid()) * 2654435761U),
      countdown_(1 + (random_ >> 26)) {}

bool stack_sampling::next() noexcept {
  if (--countdown_ > 0) return false;
  random_ = random_ * 1664525 + 1013904223;  // a linear congruential generator
  countdown_ = 32 + (random_ >> 26);
  return true;
}

bool can_measure_stacks() noexcept {
  return !sanitizer::enabled && ::sysconf(_SC_PAGESIZE) == static_cast<long>(page);
}

/// The page of this function's frame stays, and that of the functions it calls.
stack_sample::stack_sample(const stack& memory) noexcept {
  constexpr std::size_t reserve = 1024;
  const saved_errno guard(errno);
  auto* const frame = static_cast<std::byte*>(__builtin_frame_address(0));
  std::byte* const busy = floor_of_page(frame - reserve);
  const stack rest{memory.bottom, busy};
  if (rest.size() > 0 && ::madvise(rest.bottom, rest.size(), MADV_DONTNEED) != 0) return;
  memory_ = memory;
}

void stack_sample::note(const call_site& site) const noexcept {
  if (memory_.bottom == nullptr) return;
  const saved_errno guard(errno);
  std::byte* const top = floor_of_page(memory_.top + page - 1);
  const std::byte* const lowest = lowest_resident({memory_.bottom, top});
  place* const entry = lowest == nullptr ? nullptr : find_or_add(site);
  if (entry == nullptr) return;
  const auto used = static_cast<std::size_t>(top - lowest);
  std::size_t most = entry->most.load(std::memory_order_relaxed);
  while (used > most && !entry->most.compare_exchange_weak(most, used, std::memory_order_relaxed)) {
  }
  entry->samples.fetch_add(1, std::memory_order_release);
}

/// A line of a header has a name, and an entry, in each object that was compiled with it.
std::vector<stack_use> stack_uses() {
  std::map<std::pair<std::string_view, unsigned>, stack_use> by_site;
  for (const place& entry : places) {
    const std::uint64_t samples = entry.samples.load(std::memory_order_acquire);
    if (samples == 0 || !entry.has_name.load(std::memory_order_acquire)) continue;
    const call_site site{entry.file.data(), entry.line};
    stack_use& sum =
        by_site.try_emplace({site.file, site.line}, stack_use{site, 0, 0}).first->second;
    sum.samples += samples;
    sum.most = std::max(sum.most, entry.most.load(std::memory_order_relaxed));
  }
  std::vector<stack_use> result;
  result.reserve(by_site.size());
  for (const auto& [place, use] : by_site) result.push_back(use);
  return result;
}

void forget_stack_uses() noexcept {
  for (place& entry : places) {
    entry.key.store(0, std::memory_order_relaxed);
    entry.has_name.store(false, std::memory_order_relaxed);
    entry.samples.store(0, std::memory_order_relaxed);
    entry.most.store(0, std::memory_order_relaxed);
    entry.file = {};
  }
}

}}}  // namespace motet::MOTET_ABI::detail
