// SPDX-License-Identifier: MIT
// See platform/cores.hpp. The limits of the control groups are read once: a file for each group, up
// to the root.
#include "platform/cores.hpp"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/system_calls.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

constexpr std::size_t no_limit = ~std::size_t{0};

/// The beginning of a file, at most 511 bytes; empty if the file cannot be read.
struct beginning {
  explicit beginning(const char* path) noexcept {
    const int file = sys::open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    const ssize_t size = sys::read(file, text.data(), text.size() - 1);
    sys::close(file);
    length = size > 0 ? static_cast<std::size_t>(size) : 0;
  }
  std::string_view view() const noexcept { return {text.data(), length}; }

  std::array<char, 512> text{};
  std::size_t length = 0;
};

/// Returns: the number of processors that "QUOTA PERIOD", in microseconds, allows; rounded up.
std::size_t cores_in(const beginning& cpu_max) noexcept {
  char* end = nullptr;
  const unsigned long quota = std::strtoul(cpu_max.text.data(), &end, 10);
  if (end == cpu_max.text.data()) return no_limit;  // "max"
  const unsigned long period = std::strtoul(end, nullptr, 10);
  if (quota == 0 || period == 0) return no_limit;
  return (quota + period - 1) / period;
}

std::size_t read_limit() noexcept {
  const beginning groups("/proc/self/cgroup");
  const std::size_t position = groups.view().find("0::");
  if (position == std::string_view::npos) return no_limit;
  std::string_view group = groups.view().substr(position + 3);
  group = group.substr(0, group.find('\n'));
  std::size_t least = no_limit;
  for (;;) {
    std::array<char, 640> path{};
    std::snprintf(path.data(), path.size(), "/sys/fs/cgroup%.*s/cpu.max",
                  static_cast<int>(group.size()), group.data());
    least = std::min(least, cores_in(beginning(path.data())));
    if (group.empty() || group == "/") return least;
    group = group.substr(0, group.rfind('/'));
  }
}

}  // namespace

std::size_t usable_cores() noexcept {
  static const std::size_t limit = read_limit();
  cpu_set_t cores;
  const bool known_set = ::sched_getaffinity(0, sizeof cores, &cores) == 0;
  return std::min(limit, known_set ? static_cast<std::size_t>(CPU_COUNT(&cores)) : 1);
}

}}}  // namespace motet::MOTET_ABI::detail
