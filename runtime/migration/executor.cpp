// SPDX-License-Identifier: MIT
// How a fiber is sent to motet's own executors: whether it runs there already, the slot it reserves
// in a pool with a limit, and the job that lets it run.
#include <motet/detail/core/inherited_locals.hpp>
#include <motet/threads/portal.hpp>
#include <motet/threads/thread.hpp>
#include <stdexcept>
#include <utility>

#include "core/thread_state.hpp"
#include "migration/journey.hpp"
#include "threads/job_starter.hpp"
#include "threads/pool_state.hpp"
#include "threads/thread_link.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace detail {

bool runs_here(const thread& worker) {
  return runs_here(*worker.link());
}

bool runs_here(const thread_pool& pool) {
  return pool.on_own_thread();
}

bool runs_here(const strand& target) noexcept {
  return runs_here(target.pool_->worker(target.worker_));
}

bool reserve_slot(const thread_pool& pool, const journey& traveller) {
  return pool.enter_unless_inside(traveller);
}

bool reserve_slot(const strand& target, const journey& traveller) {
  return target.pool_->enter_unless_inside(traveller);
}

/// The job with which a traveller arrives at a worker or a thread. It does nothing else, so the
/// traveller can run in the fiber that was made for the job.
class arrival_job {
 public:
  explicit arrival_job(const arrival& fiber) noexcept : attempt_(fiber.attempt_) {}

  void operator()() { run(); }
  void run() noexcept { arrive(*attempt_, true); }
  static void fail(const worker_load&, const std::exception_ptr&) noexcept {}
  static void mark_undone() noexcept {}
  bool has_slot() const noexcept { return attempt_->has_slot; }
  void drop() noexcept { attempt_.reset(); }
  static void publish() noexcept {}

 private:
  std::shared_ptr<migration_attempt> attempt_;
};

void give(const thread_pool& pool, const arrival& fiber) {
  arrival_job job(fiber);
  pool.check_entered(job.has_slot());
  pool.give_to(pool.choose(), std::move(job), {}, call_site::here());
}

void give(const strand& target, const arrival& fiber) {
  arrival_job job(fiber);
  const thread_pool& pool = *target.pool_;
  pool.check_entered(job.has_slot());
  pool.give_to(pool.choose(target.worker_), std::move(job), {}, call_site::here());
}

void give(const thread& worker, const arrival& fiber) {
  deposit(*worker.link(), job_slot::holding(arrival_job(fiber), call_site::here()));
}

namespace {

job_inbox& inbox_at(void* inbox) noexcept {
  return *static_cast<job_inbox*>(inbox);
}

/// What a post() needs after the runtime has ended: a reference to a fiber keeps the mailbox.
struct runtime_inbox {
  explicit runtime_inbox(handle&& of_main) noexcept : main(std::move(of_main)) {}
  job_inbox jobs;
  const handle main;
};

std::shared_ptr<job_inbox> make_inbox(thread_state& home) {
  auto inbox = std::make_shared<runtime_inbox>(refer_to(home.main_fiber()));
  return {inbox, &inbox->jobs};
}

/// How a runtime is an executor.
constexpr executor_kind of_a_runtime{
    [](void* inbox, std::function<void()>&& f) {
      local_list inherited_locals = inherited_here();
      deposit_with(std::move(inherited_locals), job_slot::holding(std::move(f), call_site::here()),
                   [&](job_slot&& item) { leave(inbox_at(inbox), std::move(item)); });
    },
    [](const void* inbox) {
      const thread_state* thread = self();
      return thread != nullptr && thread->jobs.inbox.get() == inbox;
    },
    nullptr,
    [](void* inbox, const arrival& fiber) {
      leave(inbox_at(inbox), job_slot::holding(arrival_job(fiber), call_site::here()));
    }};

}  // namespace

}  // namespace detail

executor here() {
  detail::thread_state& home = detail::here();
  if (home.foreign) throw std::logic_error("here(): a foreign thread has no runtime");
  if (home.jobs.stopped) throw executor_stopped();
  if (!home.jobs.in_use) take_jobs(home, detail::make_inbox(home));
  return {home.jobs.inbox, detail::of_a_runtime};
}

/// Returns: whether a slot was reserved. A fiber that has a residence in the pool has its slot.
bool thread_pool::enter_unless_inside(const detail::journey& traveller) const {
  if (has_residence_in(traveller, state_.get())) {
    check_entered(false);
    return false;
  }
  enter();
  return true;
}

}}  // namespace motet::MOTET_ABI
