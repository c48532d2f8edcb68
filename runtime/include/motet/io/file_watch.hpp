// SPDX-License-Identifier: MIT
// Changes of files and directories, as they happen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <motet/detail/base/owned.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace motet { inline namespace MOTET_ABI {

/// What has happened to a watched file, or to a file in a watched directory.
struct file_event {
  /// The path as it was given to watch(); for a file in a directory, followed by a slash and its
  /// name. Empty with IN_Q_OVERFLOW.
  std::string path;
  /// IN_MODIFY, IN_CREATE, ...; with IN_ISDIR for a directory. IN_Q_OVERFLOW: events are lost, so
  /// look at the files again.
  std::uint32_t what = 0;
  /// The same number for the IN_MOVED_FROM and the IN_MOVED_TO of one rename, else 0.
  std::uint32_t cookie = 0;
};

/// Watches files and directories, not recursively; a range of their events, which ends when nothing
/// is left to watch. Move-only, for one fiber at a time; only watch() and ignore() may be called
/// while another fiber of the thread waits in next().
/// Source: inotify(7): changes over a network, or by mmap(2), are not seen.
class file_watch {
 public:
  /// Watches nothing.
  /// Not a switchpoint.
  /// Throws: std::system_error, for example when the user has too many instances of inotify(7).
  file_watch();
  /// Watches `path`: as watch().
  /// Switchpoint.
  /// Throws: as the other constructor; as watch().
  explicit file_watch(std::string_view path, std::uint32_t events = every_change);
  file_watch(file_watch&&) noexcept;
  file_watch& operator=(file_watch&&) noexcept;
  ~file_watch();

  /// All changes of a file, or of a directory's contents; not reads, opens and closes.
  static const std::uint32_t every_change;

  /// Starts to watch `path` for the events `events`, a mask of IN_MODIFY, IN_CREATE, ...; if its
  /// file is already watched, by whatever path, replaces the mask.
  /// Switchpoint.
  /// Throws: std::system_error that names the path; std::invalid_argument for a path that contains
  ///         a NUL; a pending interruption.
  void watch(std::string_view path, std::uint32_t events = every_change);
  /// Stops watching `path`; earlier events may still be returned.
  /// Returns: false if `path` is not watched, or its file no longer exists.
  /// Not a switchpoint.
  bool ignore(std::string_view path);

  /// Waits for the next event. The kernel queues a few thousand of them.
  /// Returns: std::nullopt if nothing is left to watch.
  /// Switchpoint.
  /// Throws: a pending interruption, and then no event is lost; std::system_error.
  std::optional<file_event> next();

  /// A pass through the events; incrementing it is a switchpoint.
  class iterator {
   public:
    using value_type = file_event;
    using difference_type = std::ptrdiff_t;

    explicit iterator(file_watch& range) : range_(&range) { ++*this; }
    const file_event& operator*() const noexcept { return event_; }
    const file_event* operator->() const noexcept { return &event_; }
    iterator& operator++();
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const noexcept { return at_end_; }

   private:
    file_watch* range_;
    file_event event_ = {};
    bool at_end_ = false;
  };
  /// Switchpoint.
  /// Throws: as next().
  iterator begin() { return iterator(*this); }
  /// Not a switchpoint.
  std::default_sentinel_t end() const noexcept { return {}; }

  /// Returns: a descriptor that is readable when next() would not wait. Do not read from it.
  /// Not a switchpoint.
  int native_handle() const noexcept;

 private:
  struct state;
  state& opened() const;

  detail::owned<state> state_;
};

}}  // namespace motet::MOTET_ABI
