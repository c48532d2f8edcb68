// SPDX-License-Identifier: MIT
// How a fiber gets a child on another thread, or has a function called there. A remote child has a
// proxy: a fiber on its parent's thread that stands in the family in the child's place, ends the
// child, and fails for it.
#include <motet/detail/core/inherited_locals.hpp>
#include <motet/detail/sync/waiter.hpp>
#include <motet/threads/thread.hpp>
#include <new>
#include <utility>

#include "cancellation/asked.hpp"
#include "cancellation/remote_verbs.hpp"
#include "core/thread_state.hpp"
#include "fibers/remote_fiber.hpp"
#include "threads/thread_link.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

bool remote_link::call_off(const char* reason) noexcept {
  if (call_off_before_it_begins()) return false;
  cancel(*fiber.get(), asked_here(reason));
  return true;
}

bool remote_link::await_end(const char* reason) noexcept {
  if (completion.await()) return false;
  if (!call_off(reason)) {
    completion.await_end();
    return true;
  }
  cold_part& part = cold(self()->running());
  part.callee = fiber.get();
  if (part.escalated) terminate(*part.callee, clock::duration::zero(), termination_here());
  completion.await_end();
  part.callee = nullptr;
  return true;
}

namespace {

struct refuse_job {
  void operator()(remote_job* job) const noexcept { job->refuse(stopped()); }
};
/// A job that is refused when it is destroyed, unless it was released before.
using owned_job = std::unique_ptr<remote_job, refuse_job>;

/// Leaves `item` for the thread, or refuses it.
void send(thread_link& target, owned_job item) noexcept {
  job_slot slot(*item.release());
  try {
    target.jobs.push(std::move(slot));
  } catch (const std::bad_alloc&) {
    slot.take_job().refuse(std::current_exception());
  }
}

/// Makes the running fiber, if there is one, the parent of the fiber that `item` asks for, which
/// inherits its locals.
/// Throws: as inherited_here(), before anything has happened.
void adopt(remote_job& item) {
  item.inherited_locals = inherited_here();
  thread_state* thread = self();
  if (thread == nullptr) return;
  retain(thread->running());
  item.parent = &thread->running();
}

/// The state that the spinner and the proxy, which are on one thread, share. The spinner may leave
/// first.
struct request {
  remote_wait* spinner = nullptr;
  remote_link* link = nullptr;  // in the frame of the proxy
  handle fiber;
  std::exception_ptr refusal;
};

class proxy_body {
 public:
  proxy_body(std::shared_ptr<thread_link> target, owned_job item,
             std::shared_ptr<request> spin_request) noexcept
      : target_(std::move(target)), item_(std::move(item)), request_(std::move(spin_request)) {}
  proxy_body(proxy_body&&) noexcept = default;
  /// The proxy may have been ended before its body ran.
  ~proxy_body() {
    if (request_ != nullptr && item_ != nullptr) answer({}, stopped());
  }

  void operator()() {
    remote_start beginning;
    remote_link link;
    request_->link = &link;
    item_->beginning = &beginning;
    item_->link = &link;
    send(*target_, std::move(item_));
    if (!beginning.completion.await()) {
      link.call_off("its parent has ended");
      beginning.completion.await_end();
    }
    request_->link = nullptr;
    answer(beginning.fiber, beginning.refused);
    if (beginning.refused != nullptr) return;
    cold_part& proxy_part = cold(self()->running());
    proxy_part.proxy_for = beginning.fiber.get();
    link.await_end("its parent has ended");
    proxy_part.proxy_for = nullptr;
    if (link.failed && !proxy_part.spared) std::rethrow_exception(link.fiber.get()->error);
  }

 private:
  void answer(handle fiber, std::exception_ptr refusal) noexcept {
    request_->fiber = std::move(fiber);
    request_->refusal = std::move(refusal);
    if (request_->spinner != nullptr) request_->spinner->end();
  }

  std::shared_ptr<thread_link> target_;
  owned_job item_;
  std::shared_ptr<request> request_;
};

handle spin_from_plain_thread(thread_link& target, owned_job item) {
  remote_start beginning;
  item->beginning = &beginning;
  send(target, std::move(item));
  beginning.completion.await_end();
  if (beginning.refused != nullptr) std::rethrow_exception(beginning.refused);
  return std::move(beginning.fiber);
}

/// Called when the running fiber was interrupted while it waited for the remote fiber to begin:
/// throws, unless that fiber has begun.
void withdraw_unless_begun(request& spin_request, const fiber_ref& its_proxy, remote_wait& answer) {
  const bool never_begins =
      spin_request.link == nullptr || spin_request.link->call_off_before_it_begins();
  if (never_begins) {
    spin_request.spinner = nullptr;
    its_proxy.cancel("its spinner was interrupted", {});
    throw_interruption();
  }
  answer.await_end();
}

}  // namespace

handle spin_there(const std::shared_ptr<thread_link>& target, remote_job* job) {
  owned_job item(job);
  if (self() == nullptr) return spin_from_plain_thread(*target, std::move(item));
  self()->check_may_wait();
  const auto spin_request = std::make_shared<request>();
  remote_wait answer("the spin of a fiber on another thread");
  adopt(*item);
  const auto its_proxy =
      spin({.name = "proxy"}, proxy_body(target, std::move(item), spin_request), job->site);
  cold(block_of(its_proxy)).is_proxy = true;
  spin_request->spinner = &answer;
  if (!answer.await()) withdraw_unless_begun(*spin_request, its_proxy, answer);
  if (spin_request->refusal != nullptr) std::rethrow_exception(spin_request->refusal);
  return std::move(spin_request->fiber);
}

handle call_there(const std::shared_ptr<thread_link>& target, remote_job& job) {
  thread_state* thread = self();
  if (thread != nullptr) {
    thread->deliver();
    thread->check_may_wait();
  }
  // The thread object may be destroyed while the call waits.
  const std::shared_ptr<thread_link> link_owner(target);  // NOLINT(performance-unnecessary-copy-*)
  remote_link link;
  job.link = &link;
  adopt(job);
  send(*link_owner, owned_job(&job));
  const bool interrupted = link.await_end("its caller was interrupted");
  if (link.refused != nullptr) {
    if (interrupted) throw_interruption();
    std::rethrow_exception(link.refused);
  }
  const control_block& fiber = *link.fiber.get();
  if (interrupted && fiber.ended_by == outcome::cancelled) throw_interruption();
  if (fiber.ended_by != outcome::value) throw_outcome(fiber);
  return std::move(link.fiber);
}

}}}  // namespace motet::MOTET_ABI::detail
