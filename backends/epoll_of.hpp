// SPDX-License-Identifier: MIT
// libev does not tell which epoll instance a loop has; the kernel tells which instance watches a
// descriptor.
#pragma once

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <memory>
#include <motet/detail/base/abi.hpp>
#include <string>
#include <string_view>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Source: proc(5), /proc/PID/fdinfo.
inline bool contains(const std::string& epoll, int target) {
  struct closer {
    void operator()(std::FILE* open) const noexcept { std::fclose(open); }
  };
  const std::unique_ptr<std::FILE, closer> lines(
      std::fopen(("/proc/self/fdinfo/" + epoll).c_str(), "re"));
  std::array<char, 256> line;
  int number = -1;
  while (lines != nullptr && std::fgets(line.data(), line.size(), lines.get()) != nullptr) {
    if (std::sscanf(line.data(), "tfd: %d", &number) == 1 && number == target) return true;
  }
  return false;
}

/// Returns: the descriptor of this process's epoll instance that watches `fd`; -1 if there is none,
///          or /proc is not readable.
inline int epoll_of(int fd) {
  struct closer {
    void operator()(DIR* open) const noexcept { ::closedir(open); }
  };
  const std::unique_ptr<DIR, closer> numbers(::opendir("/proc/self/fd"));
  while (const dirent* entry = numbers == nullptr ? nullptr : ::readdir(numbers.get())) {
    const std::string path = std::string("/proc/self/fd/") + entry->d_name;
    std::array<char, 64> target{};
    if (::readlink(path.c_str(), target.data(), target.size() - 1) < 0) continue;
    if (std::string_view(target.data()) != "anon_inode:[eventpoll]") continue;
    if (contains(entry->d_name, fd)) return std::atoi(entry->d_name);
  }
  return -1;
}

}}}  // namespace motet::MOTET_ABI::detail
