// SPDX-License-Identifier: MIT
// A thread from its start to its end: see thread.hpp. Its main fiber has an outcome as a spun fiber
// has. The thread_link lives until both the thread and the thread object have let go of it.
#include <pthread.h>

#include <motet/cancellation/cancel.hpp>
#include <motet/threads/thread.hpp>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "base/faults.hpp"
#include "cancellation/asked.hpp"
#include "cancellation/remote_verbs.hpp"
#include "core/hooks.hpp"
#include "core/thread_state.hpp"
#include "fibers/family.hpp"
#include "fibers/fiber_end.hpp"
#include "threads/job_starter.hpp"
#include "threads/thread_link.hpp"
#include "unhandled/unhandled.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace detail {

namespace {

/// In the frame of the fiber that starts a thread, until the new thread has begun.
struct beginning_thread {
  std::shared_ptr<thread_link> link;
  remote_wait wait{"the beginning of a thread"};
  std::exception_ptr refusal;
};

/// Throws: std::bad_alloc.
void prepare(thread_state& home, const std::shared_ptr<thread_link>& link) {
  if (link->simulated != nullptr) link->simulated->adopt(home);
  link->main = refer_to(home.main_fiber());
  accept_jobs(home, std::shared_ptr<job_inbox>(link, &link->jobs));
}

/// Calls the thread's function as the main fiber.
void live(thread_state& home, thread_link& link) {
  run_main(home, body_kind_of<job_slot, void>::kind, &*link.body);
  shield([&] {
    accept_no_more_jobs(home);
    end_children(home.main_fiber());
    link.body.reset();  // after the children, like the captures of a spun fiber
  });
}

void announce_end(thread_link& link) noexcept {
  remote_wait* waiter = nullptr;
  {
    const std::lock_guard lock(link.sharing);
    link.ended = true;
    waiter = link.awaiting_end;
  }
  if (waiter != nullptr) waiter->end();
}

void report_unclaimed_failure(const thread_link& link) noexcept {
  if (link.failure_claimed.load(std::memory_order_relaxed)) return;
  const control_block& main = *link.main.get();
  if (main.ended_by == outcome::error) report_unhandled(link.settings, main.error);
}

/// Returns: the main fiber; null: `beginning` says why there is no thread.
control_block* begin_thread(beginning_thread& beginning, thread_link& link) noexcept {
  control_block* main = nullptr;
  try {
    main = &hooks.begin_session(link.settings);
    prepare(*self(), beginning.link);
  } catch (...) {
    beginning.refusal = std::current_exception();
    if (main != nullptr) hooks.end_session(*std::exchange(main, nullptr), false);
  }
  beginning.wait.end();
  return main;
}

/// In a simulation: a thread runs only when it is its turn.
class simulated_turns {
 public:
  explicit simulated_turns(std::shared_ptr<simulated_thread> thread) noexcept
      : thread_(std::move(thread)) {
    thread_->begin();
  }
  simulated_turns(const simulated_turns&) = delete;
  simulated_turns& operator=(const simulated_turns&) = delete;
  ~simulated_turns() { thread_->end(); }

 private:
  std::shared_ptr<simulated_thread> thread_;
};

/// The first thread-local of the thread, so that it ends after all others.
void await_turn(const std::shared_ptr<simulated_thread>& thread) noexcept {
  if (thread == nullptr) return;
  thread_local const simulated_turns turns(thread);
}

void run_thread(beginning_thread& beginning) {
  await_turn(beginning.link->simulated);
  const std::shared_ptr<thread_link> link = beginning.link;
  control_block* main = begin_thread(beginning, *link);
  if (main == nullptr) return;  // `beginning` may have been destroyed
  live(*self(), *link);
  if (const std::exception_ptr first = hooks.end_session(*main, true))
    std::rethrow_exception(first);
  if (!in_this_process(*link)) return;
  if (link->alone) report_unclaimed_failure(*link);
  announce_end(*link);
}

void* enter_thread(void* beginning) {
  run_thread(*static_cast<beginning_thread*>(beginning));
  return nullptr;
}

}  // namespace

options options_here() {
  const thread_state* thread = self();
  return thread == nullptr ? options{} : thread->settings();
}

void deposit(job_inbox& inbox, job_slot&& item) {
  if (inbox.push(std::move(item)) == job_inbox::pushed::refused) throw executor_stopped();
}

void deposit(thread_link& link, job_slot&& item) {
  deposit(link.jobs, std::move(item));
}

bool runs_here(const thread_link& link) noexcept {
  return ::pthread_equal(link.number, ::pthread_self()) != 0 && in_this_process(link);
}

}  // namespace detail

thread::thread(const options& settings, detail::local_list&& inherited_locals,
               detail::job_slot&& body) {
  detail::deposit_with(std::move(inherited_locals), std::move(body),
                       [&](detail::job_slot&& function) {
                         auto* const simulation = detail::simulated_threads::present();
                         options changed;
                         if (simulation != nullptr) simulation->prepare(changed = settings);
                         const options& own = simulation != nullptr ? changed : settings;
                         link_ = std::make_shared<detail::thread_link>(own, std::move(function));
                         if (simulation != nullptr) link_->simulated = simulation->add();
                       });
  detail::beginning_thread beginning{.link = link_};
  int error = detail::faults::next("pthread_create");
  if (error == 0)
    error = ::pthread_create(&link_->number, nullptr, &detail::enter_thread, &beginning);
  if (error != 0) {
    if (link_->simulated != nullptr) link_->simulated->end();
    throw std::system_error(error, std::system_category(), "pthread_create");
  }
  beginning.wait.await_end();
  if (beginning.refusal == nullptr) return;
  ::pthread_join(link_->number, nullptr);
  std::rethrow_exception(beginning.refusal);
}

thread::~thread() {
  if (link_ == nullptr || !detail::in_this_process(*link_)) return;
  if (detail::runs_here(*link_)) {
    link_->alone = true;
    ::pthread_detach(link_->number);
    return;
  }
  detail::cancel(*link_->main.get(), detail::asked_here("its thread object was destroyed"));
  await_over();
  ::pthread_join(link_->number, nullptr);
  detail::report_unclaimed_failure(*link_);
}

void thread::await() const {
  const std::shared_ptr<detail::thread_link> state = link();
  await_main();
  state->failure_claimed.store(true, std::memory_order_relaxed);
  const detail::control_block& main = *state->main.get();
  if (main.ended_by != detail::outcome::value) detail::throw_outcome(main);
}

void thread::await_main() const {
  const std::shared_ptr<detail::thread_link> state = link();
  detail::await_end(*state->main.get());
}

void thread::await_over() const noexcept {
  detail::remote_wait end("the end of a thread");
  {
    const std::lock_guard lock(link_->sharing);
    if (link_->ended) return;
    link_->awaiting_end = &end;
  }
  end.await_end();
}

cancel_result thread::cancel(const char* reason, call_site site) const {
  return detail::cancel(*link()->main.get(), detail::asked_here(reason, site));
}

const std::shared_ptr<detail::thread_link>& thread::link() const {
  if (link_ == nullptr) throw std::logic_error("thread: the object was moved from");
  return link_;
}

}}  // namespace motet::MOTET_ABI
