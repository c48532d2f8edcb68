// SPDX-License-Identifier: MIT
// Files that are open, and what is known of them without reading them.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <ctime>
#include <memory>
#include <motet/detail/base/abi.hpp>
#include <motet/io/fd.hpp>
#include <string>
#include <string_view>

namespace motet { inline namespace MOTET_ABI { namespace http {

struct file_metadata {
  /// Returns: a tag of the file's time and size; a weak one within the second of the last change,
  ///          in which the file may change again.
  /// Source: RFC 9110, 8.8.1.
  std::string_view tag() const noexcept {
    return std::string_view(weak_tag).substr(is_settled() ? 2 : 0);
  }
  bool is_settled() const noexcept { return change_time < std::time(nullptr) - 1; }

  std::uint64_t size = 0;
  std::time_t change_time = 0;
  std::string date;  // of the last change, as sent
  std::string weak_tag;
};

/// The last ones that a thread has answered with stay open: to look whether one is still the same
/// is a third of the work of opening it, and needs no disk, as what leads to an open file is in
/// memory.
struct cached_file {
  /// Throws: status_error if there is no such file, or it cannot be read;
  ///         a pending interruption.
  static std::shared_ptr<const cached_file> at(const std::string& path);

  fd file;
  file_metadata metadata;
  struct stat status;
};

}}}  // namespace motet::MOTET_ABI::http
