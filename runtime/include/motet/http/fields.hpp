// SPDX-License-Identifier: MIT
// The fields of a message's head, which people call its headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <motet/detail/base/abi.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace motet { inline namespace MOTET_ABI { namespace http {

struct field {
  std::string_view name;
  std::string_view value;
};

/// Names and values in their order; several may have the same name. Names are case-insensitive.
class fields {
 public:
  class iterator {
   public:
    using value_type = field;
    using difference_type = std::ptrdiff_t;

    iterator() noexcept = default;
    field operator*() const noexcept { return list_->at(index_); }
    iterator& operator++() noexcept {
      ++index_;
      return *this;
    }
    iterator operator++(int) noexcept {
      iterator was = *this;
      ++*this;
      return was;
    }
    bool operator==(const iterator& other) const noexcept { return index_ == other.index_; }

   private:
    friend class fields;
    iterator(const fields& list, std::size_t index) noexcept : list_(&list), index_(index) {}

    const fields* list_ = nullptr;
    std::size_t index_ = 0;
  };

  /// Adds a field after the others.
  /// Not a switchpoint.
  /// Throws: std::invalid_argument for a name that is not a token, and for a value with a newline
  ///         or another control character, so that untrusted input cannot inject fields.
  /// Source: RFC 9110, 5.
  void add(std::string_view name, std::string_view value);
  /// The same, but replaces all fields of this name.
  /// Not a switchpoint.
  void set(std::string_view name, std::string_view value);
  /// Not a switchpoint.
  void remove(std::string_view name);
  /// Not a switchpoint.
  void clear() noexcept;

  /// Returns: the value of the first field of this name; std::nullopt if it is absent. Valid until
  ///          the fields are changed.
  /// Not a switchpoint.
  std::optional<std::string_view> find(std::string_view name) const noexcept;
  /// Returns: the same, or an empty string.
  /// Not a switchpoint.
  std::string_view get(std::string_view name) const noexcept;

  /// Not a switchpoint.
  std::size_t size() const noexcept { return extents_.size(); }
  /// Not a switchpoint.
  bool empty() const noexcept { return extents_.empty(); }
  /// Not a switchpoint.
  iterator begin() const noexcept { return {*this, 0}; }
  /// Not a switchpoint.
  iterator end() const noexcept { return {*this, size()}; }

 private:
  friend struct fields_access;

  struct extent {
    std::uint32_t name;
    std::uint32_t name_size;
    std::uint32_t value;
    std::uint32_t value_size;
  };

  field at(std::size_t index) const noexcept;

  std::string text_;  // names and values; for a received head, the whole text of it
  std::vector<extent> extents_;
};

}}}  // namespace motet::MOTET_ABI::http
