// SPDX-License-Identifier: MIT
// Some hundred names of a directory, as the kernel writes them.
#pragma once

#include <dirent.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <motet/io/directory.hpp>
#include <span>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Source: getdents(2): the length of an entry says where the next one begins.
class directory_page {
 public:
  /// Where the kernel is to write names.
  std::span<std::byte> buffer() noexcept { return bytes_; }
  void filled(std::size_t size) noexcept {
    size_ = size;
    position_ = 0;
  }

  bool empty() const noexcept { return position_ == size_; }
  directory_entry front() const noexcept {
    directory_entry entry{};
    std::memcpy(&entry.type, first() + offsetof(dirent64, d_type), sizeof entry.type);
    entry.name = reinterpret_cast<const char*>(first() + offsetof(dirent64, d_name));
    return entry;
  }
  void pop() noexcept {
    unsigned short length = 0;
    std::memcpy(&length, first() + offsetof(dirent64, d_reclen), sizeof length);
    position_ += length;
  }

 private:
  const std::byte* first() const noexcept { return bytes_.data() + position_; }

  std::size_t size_ = 0;
  std::size_t position_ = 0;
  alignas(dirent64) std::array<std::byte, 32'768> bytes_;
};

inline bool is_dot_or_dot_dot(std::string_view name) noexcept {
  return name == "." || name == "..";
}

}}}  // namespace motet::MOTET_ABI::detail
