// SPDX-License-Identifier: MIT
// An item of a thread's inbox: a function of any type, stored in place if it is small; or a job
// that has a fiber of its own kind.
#pragma once

#include <cstddef>
#include <memory>
#include <motet/base/call_site.hpp>
#include <motet/detail/base/taken.hpp>
#include <motet/detail/core/job.hpp>
#include <new>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Move-only. A function that is destroyed without having been called has been left undone.
class job_slot {
 public:
  static constexpr std::size_t capacity = 40;

  /// `movable`: a thread other than the addressee may call the function.
  /// Throws: std::bad_alloc for a function that is large, or whose move may throw.
  template <typename F>
  static job_slot holding(F&& function, call_site origin, bool movable = false) {
    using stored_callable = std::decay_t<F>;
    job_slot slot(origin);
    if constexpr (fits<stored_callable>) {
      ::new (slot.storage_) stored_callable(std::forward<F>(function));
      slot.kind_ = movable ? &kind_of<stored_callable, true> : &kind_of<stored_callable>;
    } else {
      ::new (slot.storage_)
          boxed<stored_callable>{std::make_unique<stored_callable>(std::forward<F>(function))};
      slot.kind_ =
          movable ? &kind_of<boxed<stored_callable>, true> : &kind_of<boxed<stored_callable>>;
    }
    return slot;
  }
  /// A slot for a job, which is refused unless it is taken.
  explicit job_slot(job& work) noexcept : site(work.site), kind_(&kind_of<owned_job>) {
    ::new (storage_) owned_job(work);
  }

  job_slot(job_slot&& other) noexcept : site(other.site), kind_(taken(other.kind_)) {
    if (kind_ != nullptr) kind_->move(storage_, other.storage_);
  }
  job_slot& operator=(job_slot&&) = delete;
  ~job_slot() {
    if (kind_ != nullptr) kind_->destroy(storage_);
  }

  /// Returns: whether take_job() has something to give.
  bool holds_job() const noexcept { return kind_ == &kind_of<owned_job>; }
  job& take_job() noexcept {
    kind_ = nullptr;
    return *std::launder(reinterpret_cast<owned_job*>(storage_))->item;
  }
  bool movable() const noexcept { return kind_->movable; }
  /// Returns: the function, which is an `F`.
  template <typename F>
  F& function() noexcept {
    if constexpr (fits<F>) {
      return *std::launder(reinterpret_cast<F*>(storage_));
    } else {
      return *std::launder(reinterpret_cast<boxed<F>*>(storage_))->function;
    }
  }
  /// Calls the function.
  void operator()() { kind_->call(storage_); }

  const call_site site;

 private:
  explicit job_slot(call_site origin) noexcept : site(origin) {}

  struct slot_kind {
    void (*call)(void* function);
    void (*move)(void* destination, void* source) noexcept;  // and destroys the source
    void (*destroy)(void* function) noexcept;
    bool movable;
  };

  template <typename F>
  struct boxed {
    std::unique_ptr<F> function;
    void operator()() { (*function)(); }
  };
  struct owned_job {
    explicit owned_job(job& work) noexcept : item(&work) {}
    owned_job(owned_job&& other) noexcept : item(taken(other.item)) {}
    owned_job& operator=(owned_job&&) = delete;
    ~owned_job() {
      if (item != nullptr) item->refuse(stopped());
    }
    void operator()() {}

    job* item;
  };

  template <typename F>
  static constexpr bool fits = sizeof(F) <= capacity && alignof(F) <= alignof(void*) &&
                               std::is_nothrow_move_constructible_v<F>;

  template <typename F>
  static void call_as(void* function) {
    static_cast<void>((*static_cast<F*>(function))());
  }
  template <typename F>
  static void move_as(void* destination, void* source) noexcept {
    ::new (destination) F(std::move(*static_cast<F*>(source)));
    std::destroy_at(static_cast<F*>(source));
  }
  template <typename F>
  static void destroy_as(void* function) noexcept {
    std::destroy_at(static_cast<F*>(function));
  }
  template <typename F, bool Movable = false>
  static constexpr slot_kind kind_of{&call_as<F>, &move_as<F>, &destroy_as<F>, Movable};

  const slot_kind* kind_ = nullptr;
  alignas(void*) std::byte storage_[capacity];
};

static_assert(sizeof(void*) != 8 || sizeof(job_slot) == 64);

}}}  // namespace motet::MOTET_ABI::detail
