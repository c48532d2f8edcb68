// SPDX-License-Identifier: MIT
// The entries of a directory with their sizes, and those of all directories below it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <motet/detail/base/owned.hpp>
#include <optional>
#include <string_view>

namespace motet { inline namespace MOTET_ABI {

struct walk_options {
  /// How many levels of directories below the given one are entered; 0: none, the walk lists the
  /// given one alone.
  std::size_t max_depth = std::numeric_limits<std::size_t>::max();
};

/// A file, a directory, or any other named entry. The texts are valid until the next entry is
/// requested.
struct walk_entry {
  /// Begins with the path that the walk was given.
  std::string_view path;
  /// The last component of the path.
  std::string_view name;
  /// DT_REG, DT_DIR, DT_LNK, ...; never DT_UNKNOWN.
  /// Source: readdir(3).
  unsigned char type;
  /// In bytes; of a symbolic link, the length of its target.
  /// Source: st_size in stat(3).
  std::uint64_t size;
  /// 0 in the given directory.
  std::size_t depth;
};

/// A recursive walk through a directory: a range of all entries below it, except "." and "..". A
/// directory comes directly before its contents; the order is otherwise that of the file system.
/// Symbolic links are not followed, except by the given path. An entry that is added or removed
/// during the walk may or may not appear. Move-only, for one fiber at a time.
///
/// A plain thread reads the entries, up to 256 at a time, and for up to 5 ms. In all, a walk takes
/// half the time of a `directory` and an io::statx() per name. It holds a descriptor and 32 KiB for
/// each level.
class directory_walk {
 public:
  /// Switchpoint.
  /// Throws: std::system_error, which names the path; std::invalid_argument for a path that holds a
  ///         NUL; a pending interruption.
  explicit directory_walk(std::string_view path, walk_options options = {});
  /// Not a switchpoint.
  directory_walk(directory_walk&&) noexcept;
  directory_walk& operator=(directory_walk&&) noexcept;
  ~directory_walk();

  /// Returns: the next entry; std::nullopt at the end.
  /// Switchpoint.
  /// Throws: std::system_error that names the path, for a directory that cannot be read and for a
  ///         name that cannot be examined; the next call continues after it; a pending
  ///         interruption, and std::bad_alloc: then no entry is skipped.
  std::optional<walk_entry> next();

  /// A pass through the entries that next() has not returned; incrementing it is a switchpoint.
  class iterator {
   public:
    using value_type = walk_entry;
    using difference_type = std::ptrdiff_t;

    explicit iterator(directory_walk& range) : range_(&range) { ++*this; }
    const walk_entry& operator*() const noexcept { return *entry_; }
    const walk_entry* operator->() const noexcept { return &*entry_; }
    iterator& operator++() {
      entry_ = range_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const noexcept { return !entry_; }

   private:
    directory_walk* range_;
    std::optional<walk_entry> entry_;
  };
  /// Switchpoint.
  /// Throws: as next().
  iterator begin() { return iterator(*this); }
  /// Not a switchpoint.
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  struct state;

  detail::owned<state> state_;
};

}}  // namespace motet::MOTET_ABI
