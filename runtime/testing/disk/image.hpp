// SPDX-License-Identifier: MIT
// What a simulated disk keeps of a file: the bytes that are safe, and the changes that are not yet.
#pragma once

#include <cstdint>
#include <motet/detail/base/abi.hpp>
#include <string>
#include <vector>

namespace motet { inline namespace MOTET_ABI { namespace testing {

class decisions;

/// A write, or a change of the size alone.
struct change {
  std::uint64_t offset = 0;
  std::string bytes = {};
  bool sets_size = false;  // to `offset`
};

class image {
 public:
  void add(change one);
  std::uint64_t size() const noexcept { return size_; }
  /// All changes are safe now.
  void synchronise();
  /// Each change is kept, lost or torn.
  void lose(decisions& choices);
  /// A write error: the changes are lost to the disk, but programs still see them.
  void miss(decisions& choices);
  const std::string& safe() const noexcept { return safe_; }

 private:
  void apply(const change& one);

  std::string safe_;
  std::vector<change> pending_;
  std::uint64_t size_ = 0;  // with all changes
};

}}}  // namespace motet::MOTET_ABI::testing
