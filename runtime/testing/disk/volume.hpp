// SPDX-License-Identifier: MIT
// The disk of a simulated machine: a directory of the real file system holds what its programs see,
// and beside it stands what a power failure would leave.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <motet/detail/base/abi.hpp>
#include <string>
#include <vector>

#include "testing/disk/image.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

/// Paths begin with a slash, which is the volume's root. A directory has no image.
class volume {
 public:
  using file = std::shared_ptr<image>;
  using names = std::map<std::string, file>;

  /// `root` is a directory, which is made.
  explicit volume(std::string root);
  volume(const volume&) = delete;
  volume& operator=(const volume&) = delete;
  ~volume() = default;

  const std::string& root() const noexcept { return root_; }
  /// Returns: null for a directory, and if there is none.
  file file_at(const std::string& path) const;
  /// Bytes in all files that have a name.
  std::uint64_t size() const noexcept;

  /// What a program has done.
  file created(const std::string& path, unsigned mode);
  void made_directory(const std::string& path);
  void removed(const std::string& path);
  void renamed(const std::string& old_path, const std::string& new_path, bool exchanged);
  /// Returns: the number of steps so far.
  std::size_t position() const noexcept { return settled_ + pending_.size(); }
  /// Of the steps before `position`, those in `directory` are safe now, and all before the last of
  /// them.
  void synchronise(const std::string& directory, std::size_t position);
  /// A power failure. Rewrites the directory with what it leaves.
  void fail(decisions& choices);

 private:
  struct step {
    std::string directory;
    std::string other;  // a second one, of a renaming
    std::function<void(names&)> done;
  };

  void record(step entry);
  void settle(std::size_t count);
  void write_down() const;

  const std::string root_;
  names present_;
  names safe_;
  std::vector<step> pending_;  // since synchronise(), in order: a file system keeps a journal
  std::size_t settled_ = 0;    // steps that are no longer pending
};

/// Returns: "/" for a name in the root.
std::string directory_of(const std::string& path);

}}}  // namespace motet::MOTET_ABI::testing
