// SPDX-License-Identifier: MIT
// What belongs to a fiber as a thread_local belongs to a thread: variables of which each fiber has
// its own value, and objects that live until their fiber ends. When a fiber ends, in any way, these
// values and objects are destroyed on its stack, the newest first: after its children have ended,
// and before the captures of its body are destroyed. Their destructors may wait, and nothing
// interrupts them; values and objects that a destructor makes are destroyed as well.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <motet/detail/core/locals.hpp>
#include <motet/detail/core/self.hpp>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

/// Pass this to a fiber_local, and a fiber that is spun starts with a copy of its spinner's value.
inline constexpr detail::inherited_mark inherited{};

/// A T per fiber, main fibers included, which is constructed when the fiber first accesses it. May
/// be used on any thread. A fiber_local may be destroyed before the fibers that have values of it:
/// the values live until their fibers end. A program should have few, static ones: the lookup of a
/// value walks past the fiber's values of other fiber_locals.
template <typename T>
class fiber_local {
  static_assert(std::is_object_v<T> && !std::is_array_v<T>, "a fiber_local holds an object");

 public:
  /// Each fiber's value begins as T().
  /// Not a switchpoint.
  fiber_local()
    requires std::default_initializable<T>
  = default;
  /// Each fiber's value begins as a copy of `first`.
  /// Not a switchpoint.
  explicit fiber_local(T first)
    requires std::copy_constructible<T>
      : make_(always(std::move(first))) {}
  /// Each fiber's value begins as what `make()`, called by that fiber, returns.
  /// Not a switchpoint.
  template <typename F>
    requires std::is_invocable_r_v<T, F&>
  explicit fiber_local(F make) : make_(std::move(make)) {}

  /// The same, but a spawned fiber, with or without a group, starts with a copy of the
  /// spawning fiber's value, if that has one; if the copy throws, spin() throws, without
  /// effect. A job of a pool or strand, a function that is spun, posted or called on another
  /// thread, and the function of a new thread inherit in the same way: the calling fiber makes
  /// the copy.
  /// Not a switchpoint.
  explicit fiber_local(detail::inherited_mark)
    requires std::default_initializable<T> && std::copy_constructible<T>
      : copy_(&holder::copy_of) {}
  fiber_local(detail::inherited_mark, T first)
    requires std::copy_constructible<T>
      : make_(always(std::move(first))), copy_(&holder::copy_of) {}
  template <typename F>
    requires std::is_invocable_r_v<T, F&> && std::copy_constructible<T>
  fiber_local(detail::inherited_mark, F make) : make_(std::move(make)), copy_(&holder::copy_of) {}

  fiber_local(const fiber_local&) = delete;
  fiber_local& operator=(const fiber_local&) = delete;

  /// Returns: the running fiber's own value, valid until the fiber ends. Not a switchpoint, unless
  ///          constructing a T is one.
  /// Throws: an exception of that construction, and then the fiber still has no value;
  ///         std::bad_alloc.
  T& get() const {
    detail::local_value* value = detail::find_local(key_);
    return (value == nullptr ? made() : static_cast<holder&>(*value)).value;
  }
  T& operator*() const { return get(); }
  T* operator->() const { return &get(); }

 private:
  using holder = detail::local_holder<T, detail::local_value>;

  static std::function<T()> always(T first) {
    return [first = std::move(first)] { return first; };
  }

  holder& made() const {
    detail::local_value base;
    base.key = key_;
    base.copy = copy_;
    holder& first = *fresh(base);
    detail::add_local(first);
    return first;
  }

  holder* fresh(const detail::local_value& base) const {
    if constexpr (std::default_initializable<T>) {
      if (!make_) return new holder(base, [] { return T(); });
    }
    return new holder(base, make_);
  }

  std::function<T()> make_;  // empty: T()
  detail::local_value* (*copy_)(const detail::local_value&) = nullptr;
  const std::uint64_t key_ = detail::next_local_key();
};

/// Makes a T(arguments...) that lives until the running fiber ends; in a main fiber, until its
/// thread's runtime does, after main's own frames are gone.
/// Returns: the object.
/// Not a switchpoint, unless making a T is one.
/// Throws: what making the object throws; std::bad_alloc; std::logic_error if this thread's runtime
///         has ended.
template <typename T, typename... Arguments>
T& make_local(Arguments&&... arguments) {
  static_assert(std::is_object_v<T> && !std::is_array_v<T>, "make_local makes one object");
  detail::here_core();
  auto& object = *new detail::local_holder<T, detail::local_object>(
      {}, [&] { return T(std::forward<Arguments>(arguments)...); });
  detail::add_local(object);
  return object.value;
}

}}  // namespace motet::MOTET_ABI
