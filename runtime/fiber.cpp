// SPDX-License-Identifier: MIT
// Handles, and the switchpoints that wait for nothing but other fibers.
#include <motet/fiber.hpp>

#include "abroad.hpp"
#include "switchpoint.hpp"

namespace motet::inline MOTET_ABI {

namespace detail {

void handle::retain() const noexcept {
  if (block_ != nullptr) detail::retain(*block_);
}

void handle::release() const noexcept {
  if (block_ != nullptr) detail::release(*block_);
}

namespace {

handle refer_to(control_block* block) noexcept {
  if (block != nullptr) detail::retain(*block);
  return handle(block);
}

/// Throws what a dead fiber has to tell whoever awaits it.
void throw_outcome(const control_block& dead) {
  if (dead.ended_by == outcome::error) std::rethrow_exception(dead.error);
  if (dead.ended_by == outcome::cancelled) throw fiber_cancelled(dead.label(), dead.cancel_reason);
  if (dead.ended_by == outcome::none)
    throw std::logic_error("that fiber will never end: its thread is gone");
}

void refuse_self(const control_block& fiber) {
  thread_state* thread = self();
  if (thread != nullptr && &thread->running() == &fiber) {
    throw std::logic_error("a fiber cannot schedule itself");
  }
}

}  // namespace

launch::launch(family* parents, spin_options&& how, const body_kind& kind, spin_site site) {
  thread_state& thread = here();
  control_block& spinner = thread.running();
  family& joined = parents != nullptr ? *parents : spinner.own;
  if (joined.closed) interruption::throw_cancelled("its parent is ending", 0);
  if (joined.owner == &spinner && spinner.cancel_reason != nullptr && !thread.shielded()) {
    interruption::throw_cancelled(spinner.cancel_reason, 0);
  }
  block_ = &thread.make_fiber(joined, kind, how.stack_size.value_or(thread.settings().stack_size));
  block_->name = std::move(how.name);
  block_->transient = how.transient;
  block_->site = site;
}

launch::~launch() {
  if (block_ != nullptr) block_->home->unmake(*block_);
}

void* launch::body() const noexcept {
  return block_->body;
}

handle launch::start() noexcept {
  block_->home->start(*block_);
  return handle(std::exchange(block_, nullptr));
}

void* result_of(control_block& dead) {
  if (dead.result_taken) throw std::logic_error("the fiber's value has been taken");
  return dead.result;
}

void* take_result_of(control_block& dead) {
  void* result = result_of(dead);
  dead.result_taken = true;
  return result;
}

value_slot suspend_for_token(bool conditional) {
  thread_state& thread = here();
  control_block& fiber = thread.running();
  thread.deliver();
  if (fiber.token.filled()) {
    thread.snooze();
    if ((fiber.interrupts & interrupt_raised) != 0 && thread.must_throw()) {
      fiber.token.reset();
      thread.throw_pending();
    }
  } else {
    wait_record wait("suspend");
    wait.for_token = true;
    wait.ends_when_idle = fiber.is_main && !conditional;
    if (thread.park(wait) == wake_reason::interrupted) thread.throw_pending();
  }
  return std::move(fiber.token);
}

void check_token(bool right_type) {
  if (!right_type) throw std::logic_error("suspend() was given a value of another type");
}

}  // namespace detail

detail::control_block& fiber_ref::block() const {
  if (block_.get() == nullptr) throw std::logic_error("an empty handle refers to no fiber");
  return *block_.get();
}

std::uint64_t fiber_ref::id() const {
  return block().id;
}

const std::string& fiber_ref::name() const {
  return block().name;
}

fiber_state fiber_ref::state() const {
  return block().state.load(std::memory_order_acquire);
}

fiber_ref fiber_ref::parent() const {
  return fiber_ref(detail::refer_to(block().parent));
}

std::vector<fiber_ref> fiber_ref::children() const {
  detail::control_block& fiber = block();
  std::vector<fiber_ref> found;
  if (fiber.dead()) return found;
  const detail::thread_state* thread = detail::self();
  if (thread != fiber.home) throw std::logic_error("children() works on the fiber's own thread");
  for (detail::family* each = &fiber.own; each != nullptr; each = each->next) {
    for (auto* child = each->children.front(); child != nullptr;
         child = each->children.next(*child)) {
      found.push_back(fiber_ref(detail::refer_to(child)));
    }
  }
  return found;
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
  if (error == nullptr) throw std::invalid_argument("raise() needs an exception");
  return detail::raise(block(), std::move(error));
}

cancel_result fiber_ref::cancel(const char* reason) const {
  return detail::cancel(block(), reason == nullptr ? "" : reason);
}

/// The handle may be given another fiber meanwhile; the one that is awaited stays this one.
detail::handle fiber_ref::await_outcome() const {
  detail::handle kept(block_);
  detail::await_end(block());
  detail::throw_outcome(*kept.get());
  return kept;
}

void fiber_ref::await() const {
  await_outcome();
}

fiber_ref current() {
  return fiber_ref(detail::refer_to(&detail::here().running()));
}

void snooze() {
  detail::thread_state& thread = detail::here();
  thread.deliver();
  thread.snooze();
  thread.deliver();
}

void checkpoint() {
  detail::thread_state& thread = detail::here();
  thread.deliver();
  thread.checkpoint();
  thread.deliver();
}

}  // namespace motet::inline MOTET_ABI
