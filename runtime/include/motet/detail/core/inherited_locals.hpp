// SPDX-License-Identifier: MIT
// What a fiber inherits when a fiber of another thread asks for it: copies of the asking fiber's
// values, made on that one's thread, before anything has happened.
#pragma once

#include <motet/detail/base/owned.hpp>
#include <motet/detail/core/cold_part.hpp>
#include <motet/detail/core/job_slot.hpp>
#include <motet/detail/core/locals.hpp>
#include <motet/detail/core/self.hpp>
#include <motet/detail/core/switchpoint.hpp>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Gives them to the running fiber, which is new.
void come_into(local_list&& inherited_locals) noexcept;

/// Returns: the copies; none on a thread without a runtime.
/// Throws: what a copy throws. A copy may wait.
inline local_list inherited_here() {
  const thread_core* thread = self_core();
  const cold_part* part = thread == nullptr ? nullptr : cold_if_any(thread->running());
  if (part != nullptr && part->locals.has_values()) [[unlikely]]
    return part->locals.copies();
  return {};
}

/// A function whose fiber has them when the function is called.
class heir {
 public:
  heir(local_list&& inherited_locals, job_slot&& function)
      : locals_(std::move(inherited_locals)), function_(new job_slot(std::move(function))) {}

  void operator()() {
    come_into(std::move(locals_));
    (*function_)();
  }

 private:
  local_list locals_;
  owned<job_slot> function_;
};

/// Calls `deposit(item)`, with an item that carries the locals if there are any.
/// Throws: std::bad_alloc.
template <typename Deposit>
void deposit_with(local_list&& inherited_locals, job_slot&& item, Deposit deposit) {
  if (inherited_locals.empty()) [[likely]] {
    deposit(std::move(item));
  } else {
    const call_site site = item.site;
    const bool movable = item.movable();
    deposit(job_slot::holding(heir(std::move(inherited_locals), std::move(item)), site, movable));
  }
}

}}}  // namespace motet::MOTET_ABI::detail
