// SPDX-License-Identifier: MIT
// Objects that live until their fiber ends: a list in its cold part, the newest first.
#pragma once

#include <cstdint>
#include <motet/detail/base/abi.hpp>
#include <motet/detail/base/taken.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// The first part of an allocation that holds an object.
struct local_object {
  void (*end)(local_object&) noexcept = nullptr;  // destroys and frees the whole
  local_object* older = nullptr;
};

/// The same for a fiber_local's value.
struct local_value : local_object {
  std::uint64_t key = 0;
  /// Makes the initial value for a spawned fiber; null: it starts without a value.
  local_value* (*copy)(const local_value&) = nullptr;
  local_value* older_value = nullptr;
};

/// Values have a list of their own, so that a search does not have to pass a fiber's other
/// objects.
class local_list {
 public:
  local_list() noexcept = default;
  local_list(local_list&& other) noexcept { swap(other); }
  local_list& operator=(local_list&& other) noexcept {
    swap(other);
    return *this;
  }
  ~local_list() { end(); }

  void add(local_object& object) noexcept { object.older = taken(newest_, &object); }
  void add(local_value& object) noexcept {
    object.older_value = taken(newest_value_, &object);
    add(static_cast<local_object&>(object));
  }
  /// Returns: the value with that key, even while it is being destroyed; or null.
  local_value* find(std::uint64_t key) const noexcept;

  bool empty() const noexcept { return newest_ == nullptr; }
  bool has_values() const noexcept { return newest_value_ != nullptr; }
  /// Returns: the values that a fiber spawned now inherits, in their order of creation.
  /// Throws: what a copy throws.
  [[gnu::noinline]] local_list copies() const;

  /// Destroys all, the newest first, and what their destructors add.
  void end() noexcept {
    if (newest_ != nullptr) end_all();
  }

 private:
  void swap(local_list& other) noexcept {
    newest_ = taken(other.newest_, newest_);
    newest_value_ = taken(other.newest_value_, newest_value_);
    dying_ = taken(other.dying_, dying_);
  }
  [[gnu::noinline]] void end_all() noexcept;

  local_object* newest_ = nullptr;
  local_value* newest_value_ = nullptr;
  local_value* dying_ = nullptr;  // no longer in any list
};

/// What holds a T; `Base` is local_object or local_value.
template <typename T, typename Base>
struct local_holder final : Base {
  /// Constructs the T in place from `make()`.
  template <typename Make>
  local_holder(const Base& base, Make&& make) : Base(base), value(make()) {
    this->end = [](local_object& object) noexcept { delete static_cast<local_holder*>(&object); };
  }

  static local_value* copy_of(const local_value& object) {
    return new local_holder(object,
                            [&] { return T(static_cast<const local_holder&>(object).value); });
  }

  T value;
};

/// Returns: the value that the running fiber has for `key`, or null.
/// Throws: as begin_here().
local_value* find_local(std::uint64_t key);
/// Gives `object` to the running fiber.
void add_local(local_object& object) noexcept;
void add_local(local_value& object) noexcept;
/// Returns: a number that this process never uses for another fiber_local.
std::uint64_t next_local_key() noexcept;

/// The type of `inherited`.
struct inherited_mark {};

}}}  // namespace motet::MOTET_ABI::detail
