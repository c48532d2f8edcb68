// SPDX-License-Identifier: MIT
// boost::fibers::fiber_specific_ptr.
#pragma once

#include <motet/detail/core/self.hpp>
#include <motet/fibers/local.hpp>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace compat { namespace boost_fiber {

/// A pointer with a value per fiber, initially null. When a fiber ends, what its pointer
/// refers to is given to the clean-up function, or deleted.
template <typename T>
class fiber_specific_ptr {
 public:
  using element_type = T;

  /// Not a switchpoint.
  fiber_specific_ptr() : fiber_specific_ptr([](T* old) { delete old; }) {}
  /// Not a switchpoint. A null `clean_up` leaves everything to the program.
  explicit fiber_specific_ptr(void (*clean_up)(T*))
      : slot_([clean_up] { return holder(clean_up); }) {}
  fiber_specific_ptr(const fiber_specific_ptr&) = delete;
  fiber_specific_ptr& operator=(const fiber_specific_ptr&) = delete;
  /// Cleans up for the running fiber at once, and for other fibers when they end.
  /// Not a switchpoint, unless the clean-up is.
  ~fiber_specific_ptr() {
    if (detail::self_core() != nullptr) reset(nullptr);
  }

  /// Not a switchpoint.
  T* get() const { return slot_->object; }
  T* operator->() const { return get(); }
  T& operator*() const { return *get(); }

  /// Returns: the pointer, which it resets to null without clean-up. Not a switchpoint.
  T* release() { return std::exchange(slot_->object, nullptr); }
  /// Not a switchpoint, unless the clean-up is.
  void reset(T* pointer) {
    holder& slot = slot_.get();
    if (slot.object != pointer) slot.clean(std::exchange(slot.object, pointer));
  }

 private:
  struct holder {
    explicit holder(void (*cleanup)(T*)) noexcept : clean_up(cleanup) {}
    holder(const holder&) = delete;
    holder& operator=(const holder&) = delete;
    ~holder() { clean(object); }

    void clean(T* old) const {
      if (old != nullptr && clean_up != nullptr) clean_up(old);
    }

    void (*clean_up)(T*);
    T* object = nullptr;
  };

  fiber_local<holder> slot_;
};

}}}}  // namespace motet::MOTET_ABI::compat::boost_fiber
