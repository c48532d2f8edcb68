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

/// The job with which a traveller arrives at a worker. It does nothing else, so the traveller can
/// run in the fiber that was made for the job.
class arrival_job : public pool_job {
 public:
  explicit arrival_job(const arrival& fiber) noexcept : attempt_(fiber.attempt_) {}
  arrival_job(arrival_job&&) noexcept = default;
  ~arrival_job() { settle(*this); }

  void operator()() noexcept { call(*this); }
  /// Returns: the same for a thread, or a runtime, that is no worker: nothing counts it.
  static job_slot for_thread(const arrival& fiber) {
    return job_slot::holding([attempt = fiber.attempt_] { arrive(*attempt, true); },
                             call_site::here());
  }
  bool has_slot() const noexcept { return attempt_->has_slot; }

 private:
  friend pool_job;
  void run() noexcept { arrive(*attempt_, true); }
  static void fail(const worker_load&, const std::exception_ptr&) noexcept {}
  static void mark_undone() noexcept {}
  void drop() noexcept { attempt_.reset(); }
  static void publish() noexcept {}

  std::shared_ptr<migration_attempt> attempt_;
};

namespace {

void send(pool_state& pool, const arrival& fiber, std::size_t worker) {
  arrival_job job(fiber);
  if (pool.stopping.load()) {
    if (job.has_slot()) pool.release_slot();
    throw executor_stopped();
  }
  job_slot item = job_slot::holding(std::move(job), call_site::here());
  pool.give(std::move(item), item.function<arrival_job>(), {}, worker);
}

}  // namespace

void give(const thread_pool& pool, const arrival& fiber) {
  send(*pool.state_, fiber, any_worker);
}

void give(const strand& target, const arrival& fiber) {
  send(*target.pool_->state_, fiber, target.worker_);
}

void give(const thread& worker, const arrival& fiber) {
  deposit(*worker.link(), arrival_job::for_thread(fiber));
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
                   [&](job_slot&& item) { deposit(inbox_at(inbox), std::move(item)); });
    },
    [](const void* inbox) {
      const thread_state* thread = self();
      return thread != nullptr && thread->jobs.inbox.get() == inbox;
    },
    nullptr,
    [](void* inbox, const arrival& fiber) {
      deposit(inbox_at(inbox), arrival_job::for_thread(fiber));
    }};

}  // namespace

}  // namespace detail

executor here() {
  detail::thread_state& home = detail::here();
  if (home.foreign) throw std::logic_error("here(): a foreign thread has no runtime");
  if (home.jobs.stopped) throw executor_stopped();
  if (!home.jobs.in_use) accept_jobs(home, detail::make_inbox(home));
  return {home.jobs.inbox, detail::of_a_runtime};
}

/// Returns: whether a slot was reserved. A fiber that has a residence in the pool has its slot.
bool thread_pool::enter_unless_inside(const detail::journey& traveller) const {
  if (has_residence_in(traveller, state_.get())) {
    state_->check_running();
    return false;
  }
  state_->enter();
  return true;
}

}}  // namespace motet::MOTET_ABI
