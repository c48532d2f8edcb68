// SPDX-License-Identifier: MIT
// See motet/cancel_reason.hpp. A reason that is the cause of others is shared by them; it is noted
// once, when its fiber first ends somebody else.
#include <atomic>
#include <motet/errors.hpp>
#include <new>

namespace motet { inline namespace MOTET_ABI {

namespace detail {

struct shared_reason {
  std::atomic<std::size_t> owners{1};
  cancel_reason what;
};

shared_reason* interruption::share(const cancel_reason& what) noexcept {
  return new (std::nothrow) shared_reason{.what = what};
}

shared_reason* retain(shared_reason* one) noexcept {
  one->owners.fetch_add(1, std::memory_order_relaxed);
  return one;
}

/// One after the other: the causes of a fiber deep in a tree are many, its stack is small.
void release(shared_reason* last) noexcept {
  while (last != nullptr && last->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    shared_reason* next = interruption::take_cause(last->what);
    delete last;
    last = next;
  }
}

}  // namespace detail

const cancel_reason* cancel_reason::cause() const noexcept {
  return cause_ == nullptr ? nullptr : &cause_->what;
}

}}  // namespace motet::MOTET_ABI
