// SPDX-License-Identifier: MIT
// Handles, and checkpoint().
#include <algorithm>
#include <motet/fibers/fiber.hpp>
#include <vector>

#include "cancellation/asked.hpp"
#include "cancellation/pending_throw.hpp"
#include "cancellation/remote_verbs.hpp"

namespace motet { inline namespace MOTET_ABI {

constinit std::atomic<bool> detail::debugged_program{false};

namespace detail {

namespace {

/// Returns: for a proxy, the remote or supervised child that it stands for, or null if that has
///          not begun yet, or is dead already; for any other fiber `child` itself.
control_block* itself_or_proxied(control_block& child) noexcept {
  const cold_part* part = cold_if_any(child);
  if (part == nullptr || !part->is_proxy) return &child;
  return part->proxy_for != nullptr && part->proxy_for->dead() ? nullptr : part->proxy_for;
}

/// Returns: the children in all families of `parent`, oldest first.
std::vector<control_block*> children_by_age(control_block& parent) {
  std::vector<control_block*> blocks;
  cold_part* part = cold_if_any(parent);
  for (family* group = part == nullptr ? nullptr : &part->own_family; group != nullptr;
       group = group->next) {
    for (auto* child = group->children.front(); child; child = group->children.next(*child)) {
      blocks.push_back(child);
    }
  }
  std::sort(blocks.begin(), blocks.end(),
            [](const control_block* a, const control_block* b) { return a->id < b->id; });
  return blocks;
}

void refuse_self(const control_block& fiber) {
  thread_state* thread = self();
  if (thread != nullptr && &traveller_of(thread->running()) == &fiber) {
    throw std::logic_error("schedule(): a fiber cannot schedule itself");
  }
}

}  // namespace

void throw_outcome(const control_block& dead) {
  if (dead.ended_by == outcome::error) std::rethrow_exception(dead.error);
  if (dead.ended_by == outcome::cancelled) {
    throw fiber_cancelled(label_of(dead), *dead.to_end_for);
  }
  throw std::logic_error("await(): the fiber will never end, because its thread is gone");
}

void* result_of(control_block& dead) {
  if (dead.result == result_state::taken) {
    throw std::logic_error("await(): the fiber's value has already been taken");
  }
  return result_storage(dead);
}

void* take_result_of(control_block& dead) {
  void* result = result_of(dead);
  dead.result = result_state::taken;
  return result;
}

control_block& block_of(const fiber_ref& fiber) {
  return fiber.block();
}

void refuse_empty_handle() {
  throw std::logic_error("the fiber handle is empty");
}

void refuse_token() {
  throw std::logic_error("suspend(): schedule() passed a value of another type");
}

}  // namespace detail

std::uint64_t fiber_ref::id() const {
  return block().id;
}

std::string fiber_ref::name() const {
  return detail::copied_name_of(block());
}

void fiber_ref::set_name(std::string name) const {
  detail::control_block& fiber = block();
  if (fiber.dead()) return;
  if (detail::self() != fiber.home)
    throw std::logic_error("set_name(): called on a thread other than the fiber's own");
  detail::rename(fiber, std::move(name));
}

fiber_state fiber_ref::state() const {
  return block().state.load(std::memory_order_acquire);
}

fiber_ref fiber_ref::parent() const {
  detail::control_block* owner = block().parent;
  return owner == nullptr ? fiber_ref() : fiber_ref(detail::refer_to(*owner));
}

std::vector<fiber_ref> fiber_ref::children() const {
  detail::control_block& fiber = block();
  std::vector<fiber_ref> result;
  if (fiber.dead()) return result;
  const detail::thread_state* thread = detail::self();
  if (thread != fiber.home)
    throw std::logic_error("children(): called on a thread other than the fiber's own");
  for (detail::control_block* child : detail::children_by_age(fiber)) {
    detail::control_block* traveller = detail::itself_or_proxied(*child);
    if (traveller != nullptr) result.push_back(fiber_ref(detail::refer_to(*traveller)));
  }
  return result;
}

std::thread::id fiber_ref::home() const {
  return block().mail->thread();
}

clock::time_point fiber_ref::spun_at() const {
  return block().spun_at;
}

bool fiber_ref::schedule_slot(detail::value_slot&& token) const {
  detail::refuse_self(block());
  return detail::schedule(block(), std::move(token));
}

bool fiber_ref::raise(std::exception_ptr error) const {
  if (error == nullptr) throw std::invalid_argument("raise(): the exception_ptr is null");
  return detail::raise(block(), std::move(error));
}

cancel_result fiber_ref::cancel(const char* reason, call_site site) const {
  return detail::cancel(block(), detail::asked_here(reason, site));
}

cancel_result fiber_ref::terminate(detail::timespan grace, call_site site) const {
  return detail::terminate(block(), grace.length, detail::termination_here(site));
}

fiber_ref current() {
  return fiber_ref(detail::refer_to(detail::traveller_of(detail::here().running())));
}

void checkpoint() {
  detail::thread_state& thread = detail::here();
  end_passed_limits(thread);
  thread.deliver();
  thread.checkpoint();
  thread.deliver();
}

}}  // namespace motet::MOTET_ABI
