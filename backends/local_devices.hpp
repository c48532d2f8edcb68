// SPDX-License-Identifier: MIT
// Which file systems keep all of a file's status in an inode in memory. A network's are not asked:
// statfs(2) would wait for a server, the list of mounts waits for nobody.
// Source: proc(5), /proc/pid/mountinfo.
#pragma once

#include <fcntl.h>
#include <sys/sysmacros.h>
#include <sys/types.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <motet/base/clock.hpp>
#include <motet/detail/base/abi.hpp>
#include <string_view>

#include "base/system_calls.hpp"
#include "owned_descriptor.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// One line of the list, given character by character: "36 35 98:0 / /mnt rw shared:1 - ext4 ...".
class mount_line {
 public:
  /// Returns: whether the line has been seen so far as its type.
  bool add(char next) noexcept {
    if (next != ' ' && next != '\n') {
      if (size_ < field_.size()) field_[size_++] = next;
      return false;
    }
    const std::string_view field(field_.data(), size_);
    const bool is_type = type_follows_;
    if (is_type) local_ = is_local(field);
    if (number_ == 2) device_ = device_in(field);
    type_follows_ = field == "-" && number_ > 5;
    number_ = next == '\n' ? 0 : number_ + 1;
    size_ = 0;
    return is_type;
  }
  dev_t device() const noexcept { return device_; }
  bool local() const noexcept { return local_; }

 private:
  static bool is_local(std::string_view type) noexcept {
    constexpr std::array<std::string_view, 9> local{"ext2", "ext3",  "ext4", "xfs",     "btrfs",
                                                    "f2fs", "tmpfs", "proc", "squashfs"};
    return std::find(local.begin(), local.end(), type) != local.end();
  }
  static dev_t device_in(std::string_view field) noexcept {
    unsigned major = 0;
    unsigned minor = 0;
    const char* const end = field.data() + field.size();
    const auto result = std::from_chars(field.data(), end, major);
    if (result.ptr != end) std::from_chars(result.ptr + 1, end, minor);
    return ::makedev(major, minor);
  }

  std::array<char, 32> field_{};  // the begin: longer ones are paths
  std::size_t size_ = 0;
  int number_ = 0;
  bool type_follows_ = false;
  dev_t device_ = 0;
  bool local_ = false;
};

/// Belongs to one thread. After an unmount a device number may be reused, so a result expires after
/// one second.
class local_devices {
 public:
  bool contains(dev_t device) noexcept {
    const clock::time_point present = std::chrono::steady_clock::now();
    entry& slot = cache_[device % cache_.size()];
    if (slot.device != device || present >= slot.expiry) {
      slot = {device, present + std::chrono::seconds(1), look_up(device)};
    }
    return slot.local;
  }

 private:
  struct entry {
    dev_t device = 0;
    clock::time_point expiry{};
    bool local = false;
  };

  static bool look_up(dev_t device) noexcept {
    const owned_descriptor list{sys::open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC)};
    std::array<char, 2048> part;
    mount_line line;
    for (;;) {
      const ssize_t size = sys::read(list.number, part.data(), part.size());
      if (size <= 0) return false;
      for (ssize_t i = 0; i < size; ++i) {
        if (line.add(part[static_cast<std::size_t>(i)]) && line.device() == device)
          return line.local();
      }
    }
  }

  std::array<entry, 16> cache_{};
};

}}}  // namespace motet::MOTET_ABI::detail
