// SPDX-License-Identifier: MIT
// Groups: a group is a family that its owner can wait for, and end.
#include <future>
#include <motet/fibers/group.hpp>
#include <stdexcept>

#include "base/made_exception.hpp"
#include "cancellation/asked.hpp"
#include "cancellation/child_failures.hpp"
#include "cancellation/interrupt.hpp"
#include "core/hooks.hpp"
#include "fibers/family.hpp"
#include "fibers/group_ends.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace detail {

namespace {

void check_thread_of(const family& group) {
  if (group.owner != nullptr && group.owner->home != self()) {
    throw std::logic_error("group: used on a thread other than that of its owner");
  }
}

}  // namespace

group_slot::group_slot(group_family& group) {
  check_thread_of(group);
  if (group.limit == 0) return;
  reserve_slot(group, here());
  group_ = &group;
  owner_ = refer_to(*group.owner);
}

void group_slot::give_back() noexcept {
  if (!at_home(*owner_.get()) || !stands(*owner_.get(), *group_)) return;
  --group_->promises;
  offer_slot(*group_);
}

std::exception_ptr unready_end() noexcept {
  return made_exception<std::logic_error>(
      "group::start(): the body returned without setting its promise");
}

void rethrow_for_start_of(const fiber_ref& child) {
  try {
    throw;
  } catch (const std::future_error&) {
    child.await();
    throw;
  }
}

}  // namespace detail

group::group() : family_(0) {
  detail::enter_owner(family_, detail::here());
}

group::group(std::size_t limit) : family_(limit) {
  if (limit == 0) throw std::invalid_argument("group: the limit must be at least 1");
  detail::enter_owner(family_, detail::here());
}

group::~group() {
  if (family_.owner == nullptr) return;
  if (family_.owner->home != detail::self()) detail::go_to(*family_.owner);
  detail::thread_state& thread = home_of(*family_.owner);
  if (!family_.awaited) detail::warn_of_unawaited(family_, thread, "its group");
  family_.closed = true;
  move_to_owner(family_, thread);
  end_family(family_, "its group has ended");
  leave_owner(family_);
}

void group::check_thread() const {
  detail::check_thread_of(family_);
}

void group::check_owner() const {
  if (family_.owner != &detail::here().running()) {
    throw std::logic_error("group: only its owner can await it");
  }
}

void group::throw_failure() {
  detail::control_block& owner = detail::here().running();
  detail::control_block* child = take_failure(owner, &family_);
  if (child == nullptr) return;
  const std::exception_ptr error = child->error;
  refresh_failures(owner);
  release_at_home(*child);
  std::rethrow_exception(error);
}

void group::await_all() {
  check_owner();
  family_.awaited = true;
  detail::thread_state& thread = detail::here();
  if (await_family(family_, detail::until::lasting_over, true) != detail::wake_reason::handed) {
    thread.throw_pending();
  }
  throw_failure();
  thread.deliver();
}

fiber_ref group::next() {
  check_owner();
  family_.awaited = true;
  detail::thread_state& thread = detail::here();
  for (;;) {
    throw_failure();
    thread.deliver();
    if (detail::control_block* dead_fiber = family_.dead_fibers.pop_front()) {
      ++dead_fiber->references;
      return fiber_ref(detail::handle(dead_fiber));
    }
    if (family_.satisfied(detail::until::news)) return {};
    if (await_once(family_, detail::until::news, true) != detail::wake_reason::handed) {
      thread.throw_pending();
    }
  }
}

std::vector<std::exception_ptr> group::failures() const {
  check_thread();
  std::vector<std::exception_ptr> errors;
  if (family_.first_failure == nullptr) return errors;
  errors.push_back(family_.first_failure);
  for (auto* failure = family_.other_failures; failure != nullptr;
       failure = detail::cold(*failure).next_failure) {
    errors.push_back(failure->error);
  }
  return errors;
}

void group::cancel(const char* reason, call_site site) {
  check_thread();
  family_.awaited = true;
  cancel_family(family_, detail::asked_here(reason, site));
}

void group::terminate(detail::timespan grace, call_site site) {
  check_thread();
  family_.awaited = true;
  terminate_family(family_, grace.length, detail::termination_here(site));
}

}}  // namespace motet::MOTET_ABI
