// SPDX-License-Identifier: MIT
// See motet/cancellation/cancel_reason.hpp. A reason that is the cause of others is in memory that
// they share.
#include <atomic>
#include <motet/base/errors.hpp>
#include <motet/detail/base/atomic.hpp>
#include <new>

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct noted_reason {
  atomic<std::size_t> owners{1};
  cancel_reason reason;
};

shared_cause interruption::share(const cancel_reason& reason) noexcept {
  return shared_cause(new (std::nothrow) noted_reason{.reason = reason});
}

void shared_cause::retain() const noexcept {
  note_->owners.fetch_add(1, std::memory_order_relaxed);
}

/// A loop instead of recursion: a fiber deep in a tree has a long chain of causes and a small
/// stack.
void shared_cause::release() noexcept {
  while (note_ != nullptr && note_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    noted_reason* last = std::exchange(note_, interruption::take_cause(note_->reason));
    delete last;
  }
  note_ = nullptr;
}

const cancel_reason* shared_cause::get() const noexcept {
  return note_ == nullptr ? nullptr : &note_->reason;
}

}}}  // namespace motet::MOTET_ABI::detail
