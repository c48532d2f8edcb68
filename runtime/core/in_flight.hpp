// SPDX-License-Identifier: MIT
// The operations that the kernel works on for this thread, found by their descriptor.
#pragma once

#include <array>
#include <cstddef>
#include <motet/detail/base/list.hpp>
#include <motet/detail/core/pending_operation.hpp>
#include <motet/runtime/backend.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct closing_tag;

/// A descriptor that a fiber is closing, in the frame of that fiber.
struct closing : tagged_link<closing_tag> {
  explicit closing(int descriptor) noexcept : fd(descriptor) {}
  int fd;
};

struct descriptor_use_tag;

/// In the frame of a call that makes several operations on one descriptor: between two of them the
/// descriptor may be closed, and its number be another file's.
struct descriptor_use : tagged_link<descriptor_use_tag> {
  explicit descriptor_use(int descriptor) noexcept : fd(descriptor) {}
  int fd;
  bool closed = false;
  const operation* waits_for = nullptr;  // on another descriptor, and ended by the close as well
};

/// A hash table without memory of its own.
class in_flight {
 public:
  void add(pending_operation& entry) noexcept { row(entry.op->fd).push_back(entry); }
  static void remove(pending_operation& entry) noexcept { table::remove(entry); }
  static bool has(pending_operation& entry) noexcept { return table::contains(entry); }

  /// Returns: an operation on `fd` behind `start` (null: the first one), or null.
  pending_operation* find(int fd, pending_operation* start = nullptr) noexcept {
    table& candidates = row(fd);
    auto* entry = start == nullptr ? candidates.front() : candidates.next(*start);
    while (entry != nullptr && entry->op->fd != fd) entry = candidates.next(*entry);
    return entry;
  }

  /// Calls `f(entry)` for each.
  template <typename F>
  void each(F f) noexcept {
    for (table& row : rows_) {
      for (auto* entry = row.front(); entry != nullptr; entry = row.next(*entry)) f(*entry);
    }
  }

  void abandon() noexcept {
    for (table& row : rows_) row.abandon();
  }

 private:
  using table = list<pending_operation, in_flight_tag>;

  table& row(int fd) noexcept { return rows_[static_cast<std::size_t>(fd) % rows_.size()]; }

  std::array<table, 512> rows_;
};

}}}  // namespace motet::MOTET_ABI::detail
