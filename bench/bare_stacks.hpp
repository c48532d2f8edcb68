// SPDX-License-Identifier: MIT
// Stacks without guards, in one mapping. An odd number of pages apart, and with tops that differ by
// lines, they do not fight for the same sets of a cache.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace bench {

class bare_stacks {
 public:
  explicit bare_stacks(std::size_t count) : size_(count * stride) {
    void* found = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED) {
      std::perror("mmap");
      std::exit(1);
    }
    bytes_ = static_cast<std::byte*>(found);
    ::madvise(bytes_, size_, MADV_NOHUGEPAGE);
  }
  bare_stacks(const bare_stacks&) = delete;
  bare_stacks& operator=(const bare_stacks&) = delete;
  ~bare_stacks() { ::munmap(bytes_, size_); }

  std::byte* top(std::size_t i) const { return bytes_ + (i + 1) * stride - i % colours * line; }

 private:
  static constexpr std::size_t stride = 25 * 4096;
  static constexpr std::size_t line = 64;
  static constexpr std::size_t colours = 16;

  std::size_t size_;
  std::byte* bytes_ = nullptr;
};

}  // namespace bench
