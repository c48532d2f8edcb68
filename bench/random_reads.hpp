// SPDX-License-Identifier: MIT
// What the two programs that read a file at random places share: their arguments and the places.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "bench_args.hpp"
#include "measure.hpp"

namespace bench {

inline constexpr std::size_t page = 4'096;  // bytes of a read
inline constexpr unsigned depth = 32;       // reads at a time

/// The program FILE SECONDS [direct]: `direct` goes past the kernel's cache.
struct reads_wanted {
  reads_wanted(int count, char** words) {
    const bool past_cache = count == 4 && std::string_view(words[3]) == "direct";
    if (count != 3 && !past_cache) fail("usage: FILE SECONDS [direct]");
    file = check(::open(words[1], O_RDONLY | O_CLOEXEC | (past_cache ? O_DIRECT : 0)), words[1]);
    seconds = std::strtod(words[2], nullptr);
    struct stat found{};
    check(::fstat(file, &found), "fstat");
    pages = static_cast<std::uint64_t>(found.st_size) / page;
    if (pages == 0) fail("the file is smaller than 4 KiB");
  }
  int file = -1;
  double seconds = 0;
  std::uint64_t pages = 0;
};

/// The offsets of pages of the file, in an order that looks random.
class places {
 public:
  explicit places(std::uint64_t pages) : pages_(pages) {}
  off_t next() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<off_t>((state_ >> 33) % pages_ * page);
  }

 private:
  std::uint64_t pages_;
  std::uint64_t state_ = 1;
};

}  // namespace bench
