// SPDX-License-Identifier: MIT
// See platform/guard.hpp. Source: madvise(2) and process_madvise(2) of Linux 6.13 and 6.15.
#include "platform/guard.hpp"

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>  // IWYU pragma: keep
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <motet/base/errors.hpp>

#include "base/disabled.hpp"
#include "base/faults.hpp"
#include "base/system_calls.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

constexpr int madv_guard_install = 102;  // newer than Debian 12's headers
constexpr int madv_guard_remove = 103;
constexpr std::size_t most_at_once = 64;
constexpr std::size_t mappings_a_guard = 2;  // the guard's, and the rest of the mapping it divides

constexpr const char* no_guard = "no memory for another fiber's stack: its guard is refused";
constexpr const char* no_mapping =
    "another fiber's stack would take more than half of the kernel's vm.max_map_count";

std::atomic<std::size_t> mappings_used{0};

/// Half of the kernel's limit; the other half is for the program: malloc(3) needs mappings too.
std::size_t most_mappings() {
  static const std::size_t half = [] {
    std::size_t limit = 65530;
    std::ifstream("/proc/sys/vm/max_map_count") >> limit;
    return limit / 2;
  }();
  return half;
}

/// Returns: the number of ranges that are guarded now.
std::size_t install_vectored(std::byte* address, std::size_t stride, std::size_t count,
                             std::size_t size) noexcept {
  const auto self =
      static_cast<int>(faults::call("pidfd_open", ::syscall, SYS_pidfd_open, ::getpid(), 0));
  if (self < 0) return 0;
  std::size_t count_so_far = 0;
  while (count_so_far < count) {
    std::array<iovec, most_at_once> ranges;
    const std::size_t batch = std::min(count - count_so_far, most_at_once);
    for (std::size_t i = 0; i < batch; ++i)
      ranges[i] = {address + (count_so_far + i) * stride, size};
    const ssize_t result = faults::call("process_madvise", ::syscall, SYS_process_madvise, self,
                                        ranges.data(), batch, madv_guard_install, 0);
    if (result < static_cast<ssize_t>(size)) break;
    count_so_far += static_cast<std::size_t>(result) / size;
  }
  sys::close(self);
  return count_so_far;
}

void protect(std::byte* address, std::size_t size) {
  if (mappings_used.fetch_add(mappings_a_guard) + mappings_a_guard > most_mappings()) {
    give_mappings_back(mappings_a_guard);
    throw stack_unavailable(no_mapping);
  }
  if (faults::call("mprotect", ::mprotect, address, size, PROT_NONE) == 0) return;
  give_mappings_back(mappings_a_guard);
  throw stack_unavailable(no_guard);
}

/// Tries whether write(2) can read the page: it can if the kernel does not know the advice, or
/// ignores it.
bool faults(const std::byte* page) noexcept {
  const int target = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (target < 0) return false;
  const bool refused = sys::write(target, page, sizeof(std::uint64_t)) < 0 && errno == EFAULT;
  sys::close(target);
  return refused;
}

struct finding {
  guard_kind best = guard_kind::protection;
  bool locked = false;
};

finding look() noexcept {
  finding outcome;
  const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* memory = ::mmap(nullptr, 2 * size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return outcome;
  auto* pages = static_cast<std::byte*>(memory);
  const bool single = ::madvise(pages, size, madv_guard_install) == 0 && faults(pages);
  outcome.locked = !single && ::madvise(pages, size, MADV_DONTNEED) != 0 && errno == EINVAL;
  if (single && !disabled("guard")) {
    pages += size;
    const bool vectored = !disabled("process_madvise") &&
                          install_vectored(pages, size, 1, size) == 1 && faults(pages);
    outcome.best = vectored ? guard_kind::vectored : guard_kind::single;
  }
  ::munmap(memory, 2 * size);
  return outcome;
}

const finding& found() {
  static const finding once = look();
  return once;
}

}  // namespace

guard_kind best_guard() {
  return found().best;
}

bool memory_is_locked() {
  return found().locked;
}

std::size_t install_guards(std::byte* address, std::size_t stride, std::size_t count,
                           std::size_t size) {
  std::size_t count_so_far = 0;
  std::size_t mappings = 0;
  if (best_guard() == guard_kind::vectored)
    count_so_far = install_vectored(address, stride, count, size);
  for (; count_so_far < count; ++count_so_far) {
    std::byte* next = address + count_so_far * stride;
    if (best_guard() != guard_kind::protection &&
        faults::call("madvise", ::madvise, next, size, madv_guard_install) == 0) {
      continue;
    }
    try {
      protect(next, size);
    } catch (...) {
      give_mappings_back(mappings);
      throw;
    }
    mappings += mappings_a_guard;
  }
  return mappings;
}

void seal(std::byte* address, std::size_t size) noexcept {
  if (best_guard() != guard_kind::protection && ::madvise(address, size, madv_guard_install) == 0)
    return;
  ::madvise(address, size, MADV_DONTNEED);
  ::mprotect(address, size, PROT_NONE);
}

void unseal(std::byte* address, std::size_t size) noexcept {
  if (best_guard() != guard_kind::protection) ::madvise(address, size, madv_guard_remove);
  ::mprotect(address, size, PROT_READ | PROT_WRITE);
}

void give_mappings_back(std::size_t count) noexcept {
  mappings_used.fetch_sub(count);
}

}}}  // namespace motet::MOTET_ABI::detail
