// SPDX-License-Identifier: MIT
// What a simulated disk keeps of a file: the bytes that are safe, and the changes that are not yet.
#pragma once

#include <cstddef>
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
  explicit image(unsigned mode) noexcept : mode_(mode) {}

  /// Returns: the permissions of the file.
  unsigned mode() const noexcept { return mode_; }
  void add(change entry);
  std::uint64_t size() const noexcept { return size_; }
  /// Returns: the number of changes so far.
  std::size_t position() const noexcept { return settled_ + pending_.size(); }
  /// The changes before `position` are safe now.
  void synchronise(std::size_t position);
  /// Each change is kept, lost or torn.
  void lose(decisions& choices);
  /// A write error: the same happens to the changes before `position`, but programs see them all.
  void miss(std::size_t position, decisions& choices);
  const std::string& safe() const noexcept { return safe_; }

 private:
  void apply(const change& entry);
  std::vector<change> take_before(std::size_t position);

  const unsigned mode_;
  std::string safe_;
  std::vector<change> pending_;
  std::size_t settled_ = 0;  // changes that are no longer pending
  std::uint64_t size_ = 0;   // with all changes
};

}}}  // namespace motet::MOTET_ABI::testing
