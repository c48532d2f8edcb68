// SPDX-License-Identifier: MIT
// The entries of a directory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <motet/detail/base/owned.hpp>
#include <motet/io/fd.hpp>
#include <optional>
#include <string_view>

namespace motet { inline namespace MOTET_ABI {

/// One name in a directory.
struct directory_entry {
  /// Valid until the next entry is requested.
  std::string_view name;
  /// DT_REG, DT_DIR, ...; DT_UNKNOWN where the file system does not say: ask io::statx().
  /// Source: readdir(3).
  unsigned char type;
};

/// An open directory: a range of its names, except "." and "..", in no particular order. Move-only,
/// for one fiber at a time. A name that is added or removed during the iteration may or may not
/// appear; all others appear once. The names are read on a plain thread, many at a time.
class directory {
 public:
  /// Switchpoint.
  /// Throws: std::system_error, which names the path; std::invalid_argument for a path that holds a
  ///         NUL; a pending interruption.
  explicit directory(std::string_view path);
  /// Takes over an open directory, for example one that io::openat() has opened.
  /// Not a switchpoint.
  explicit directory(fd descriptor);
  directory(directory&&) noexcept;
  directory& operator=(directory&&) noexcept;
  ~directory();

  /// Returns: the next name; std::nullopt at the end.
  /// Switchpoint.
  /// Throws: std::system_error; a pending interruption, and then no name is skipped.
  std::optional<directory_entry> next();

  /// A pass through the names that next() has not returned; incrementing it is a switchpoint.
  class iterator {
   public:
    using value_type = directory_entry;
    using difference_type = std::ptrdiff_t;

    explicit iterator(directory& range) : range_(&range) { ++*this; }
    const directory_entry& operator*() const noexcept { return entry_; }
    const directory_entry* operator->() const noexcept { return &entry_; }
    iterator& operator++();
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const noexcept { return at_end_; }

   private:
    directory* range_;
    directory_entry entry_ = {};
    bool at_end_ = false;
  };
  /// Switchpoint.
  /// Throws: as next().
  iterator begin() { return iterator(*this); }
  /// Not a switchpoint.
  std::default_sentinel_t end() const noexcept { return {}; }

  /// Returns: the descriptor, which the directory still owns: names can be opened relative to it.
  /// Not a switchpoint.
  int native_handle() const noexcept { return fd_.get(); }

 private:
  struct page;

  detail::owned<page> page_;
  fd fd_;  // declared after the page, so that it is closed first
};

}}  // namespace motet::MOTET_ABI
