// SPDX-License-Identifier: MIT
// One thread on one page: who runs, who is runnable, what is due, what the kernel works on.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iosfwd>
#include <memory>
#include <motet/backend.hpp>
#include <motet/detail/heart/scope.hpp>
#include <motet/detail/heart/switchpoint.hpp>
#include <motet/options.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "ground/adaptive_spin.hpp"
#include "ground/cores.hpp"
#include "ground/stack_pool.hpp"
#include "ground/tick_clock.hpp"
#include "heart/block_pool.hpp"
#include "heart/in_flight.hpp"
#include "heart/overflow.hpp"
#include "heart/remote_requests.hpp"
#include "heart/roster.hpp"
#include "heart/speaker.hpp"
#include "heart/timer_queue.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

class job_inbox;
struct pool_state;
struct station;

class thread_state : public thread_core {
 public:
  /// Throws: what making the mailbox throws.
  /// `numbers_used`: what an earlier runtime of this thread says it has; 0: there was none.
  thread_state(const options& chosen, std::unique_ptr<backend> kernel,
               std::uint64_t numbers_used = 0);
  thread_state(const thread_state&) = delete;
  thread_state& operator=(const thread_state&) = delete;
  ~thread_state();

  control_block& main_fiber() noexcept { return *main_; }
  backend& kernel() noexcept { return *kernel_; }
  mailbox& mail() noexcept { return *mail_; }
  const options& settings() const noexcept { return options_; }

  // The switchpoint: see also thread_core.
  /// After a call that did not wait: every 16th in a row looks around, and switches if somebody
  /// else can run.
  void give_way() noexcept;
  /// snooze() if 500 us have passed since the last poll; submits what is queued.
  void checkpoint() noexcept;

  // Time: heart/poll.cpp.
  /// Returns: the present instant, never earlier than the true one.
  clock::time_point now() noexcept {
    return virtual_time_ ? kernel_->now() : tick_clock_.now([&] { return kernel_->now(); });
  }
  /// reserve_timers() must have made room.
  void arm(timer& alarm) noexcept;
  void disarm(timer& alarm) noexcept;
  /// Moves an armed one to where its changed `due` belongs.
  void rearm(timer& alarm) noexcept { timers_.update(alarm); }
  /// Makes room for `more` timers, so that arm() need not.
  void reserve_timers(std::size_t more) {
    timers_.reserve(timers_wanted_ + more);
    timers_wanted_ += more;
  }
  void unreserve_timer() noexcept { --timers_wanted_; }

  // Operations: heart/perform.cpp.
  /// Hands `op` to the kernel and waits until it is over; an interruption ends it early.
  /// Returns: op.result; -ECANCELED only if it was interrupted, or -EBADF if its descriptor was
  ///          closed, before anything happened.
  std::int32_t perform(operation& op, const char* what) noexcept;
  /// Hands one to the kernel, for the running fiber, and returns.
  /// Returns: false if it was over at once.
  bool begin(pending_operation& pending) noexcept;
  /// Has the kernel end one that is not done, and waits until it has.
  void call_off(pending_operation& pending) noexcept;
  /// Waits again, for the end of what goes on elsewhere, after an interruption.
  void park_until_over(wait_record& wait) noexcept;
  bool being_closed(int fd) noexcept;
  /// Ends this thread's operations on `fd`, and lets none begin, until all are over: the caller
  /// then closes it at once.
  /// Returns: false, without effect, if another fiber is about to close it.
  bool end_operations(int fd) noexcept;

  // Interruption: interruption/interrupt.cpp.
  bool raise(control_block& fiber, std::exception_ptr error) noexcept;
  cancel_result cancel(control_block& fiber, const char* reason, call_site site) noexcept;
  cancel_result terminate(control_block& fiber, clock::duration grace, call_site site) noexcept;
  bool give_token(control_block& fiber, value_slot&& token) noexcept;
  cancel_result give_result(control_block& fiber, const char* reason, call_site site,
                            value_slot&& value) noexcept;
  void resume_with(control_block& fiber, std::uint64_t number, bool broken,
                   value_slot&& value) noexcept;
  /// Returns: whether that ended a wait of the fiber.
  bool interrupt_fiber(control_block& fiber, interrupt why) noexcept;
  /// Recomputes whether a child's failure is pending.
  [[gnu::noinline]] void refresh_failures(control_block& fiber) noexcept;

  // What a switchpoint throws: interruption/pending_throw.cpp.
  /// Returns: how many of the fiber's exceptions are in flight, and how many shields it is under.
  unsigned shelter_of(const control_block& fiber) const noexcept {
    const unsigned in_flight = &fiber == running_ ? live_exceptions_->uncaught : fiber.uncaught;
    return in_flight + fiber.shields;
  }
  bool in_shield(const control_block& fiber) const noexcept;
  [[noreturn, gnu::noinline]] void throw_cancellation();
  void leave_ended_scope(control_block& fiber, const scope& left) noexcept;
  void end_stopped_scopes(control_block& fiber) noexcept;

  /// Ends what limits the running fiber and is due, though no poll has found it yet.
  void end_passed_limits() noexcept {
    if (running_->scopes != nullptr && !timers_.empty()) end_passed_limits_now();
  }

  // Life: life/fiber_end.cpp and life/family.cpp.
  control_block& make_fiber(family& parents, const body_kind& kind, call_site site,
                            std::size_t stack_size);
  /// Gives back a fiber that was made but not started.
  void unmake(control_block& fiber) noexcept;
  /// Whether nobody could tell the running fiber, between two functions, from one that has just
  /// been spun.
  bool could_be_new() noexcept {
    const control_block& fiber = *running_;
    return !fiber.has_cold_part && fiber.interrupts == 0 && !shared(*running_);
  }
  /// It is another one from here on.
  void begin_anew(call_site site) noexcept;
  void retain(control_block& block) noexcept { ++block.references; }
  void release(control_block& block) noexcept;
  // In a poll or a switch: heart/reaper.cpp.
  /// As release(), but leaves what is to be destroyed to another fiber.
  [[gnu::noinline]] void release_later(control_block& block) noexcept;
  void drop_later(value_slot&& value) noexcept;
  /// Waits until the family's children are over; an interruption ends the wait (if it may).
  wake_reason await_family(family& children, until goal, bool interruptible) noexcept;
  wake_reason await_once(family& children, until goal, bool interruptible) noexcept;
  void cancel_family(family& children, const char* reason, call_site site = {}) noexcept;
  /// Makes `group` one of the running fiber's families; takes it from its owner's.
  void enter_owner(family& group) noexcept;
  void leave_owner(group_family& group) noexcept;
  void leave_to_owner(family& group) noexcept;
  // life/group_ends.cpp
  /// Promises room for one more fiber in a group, which has a limit; waits for it if need be.
  /// Throws: what is pending; `cancelled` if the group ends meanwhile.
  void take_room(group_family& group);
  /// There is room that nobody has taken.
  void pass_room(group_family& group) noexcept;
  /// Cancels the children of `fiber`, which runs, in every family, and awaits them.
  [[gnu::noinline]] void end_children(control_block& fiber) noexcept;
  /// Returns: the first failed child of that family (any, if null) that the fiber was not told of.
  [[gnu::noinline]] control_block* take_failure(control_block& parent, const family* from) noexcept;
  /// Returns: what it has failed with, or null.
  std::exception_ptr take_error_of_child(control_block& parent) noexcept;
  std::exception_ptr next_failure(control_block& fiber) noexcept;
  void tell_untold(control_block& parent) noexcept;
  [[gnu::noinline]] void tell_undelivered(control_block& fiber) noexcept;
  void withdraw_failure(control_block& failed) noexcept;
  /// The same for one of another thread, whose keeper is here if its parent is.
  void spare_keeper_of(const control_block& failed) noexcept;

  /// Runs a thread's function in the main fiber, the running one, whose outcome it decides.
  void run_main(const body_kind& kind, void* function) noexcept;
  /// Starts a fiber that is nobody's child; it must end when the runtime does, or is cancelled.
  /// Throws: std::bad_alloc.
  void spin_for_the_house(void (*body)(void*), void* argument, const char* what);
  /// Starts one that starts what others leave in `from`: whoever leaves something can wake this
  /// thread, which is never stuck.
  /// Throws: std::bad_alloc.
  void take_jobs(job_inbox& from);
  /// Takes no more, and leaves undone what it has not started; then that fiber ends. The running
  /// one is under a shield: what is left is destroyed here.
  void take_no_more_jobs() noexcept;

  /// Ends every fiber and the mailbox. The running fiber is the main one.
  /// Returns: the first failure that it was not told of, if `leave_first` and its function is no
  ///          thread's; on_unhandled gets the others.
  std::exception_ptr end(bool leave_first) noexcept;
  /// Ends every fiber but the running one, which calls std::exit, and the main one.
  void end_others() noexcept;
  /// Whether it is the main fiber, and another one has called std::exit: it never runs again.
  bool left_out(const control_block& fiber) const noexcept {
    return main_left_out_ && &fiber == main_;
  }

  /// In a forked child: the running fiber is the main one, and the only one.
  void start_over() noexcept;

  /// One line a fiber: name, state, what it waits for and for how long, where it was spun.
  void dump(std::ostream& out);
  // process/dump_signal.cpp
  bool answer_dump_request(void* context) noexcept;
  /// Before a dump signal: to know in the handler whether the main fiber is on its stack.
  void learn_own_stack() noexcept { own_stack_ = this_threads_stack(); }
  void notice(std::string_view line) noexcept;

  /// Returns: an identity for a scope that no other has.
  std::uint64_t next_scope() noexcept { return ++last_scope_; }
  /// Returns: the last number that a fiber or a scope here has had.
  std::uint64_t numbers_used() const noexcept { return std::max(next_id_, last_scope_); }

  // Away from home: travel/journey.cpp and travel/baggage.cpp.
  /// Whether it is for a fiber's visit to a thread that is not motet's, where it cannot wait.
  bool foreign() const noexcept { return foreign_; }
  /// Whether its time is the backend's own.
  bool virtual_time() const noexcept { return virtual_time_; }
  /// The pool that its thread is a worker of, or null.
  const pool_state* pool() const noexcept { return pool_; }
  void works_for(const pool_state* which) noexcept { pool_ = which; }
  /// Whether `fiber` has called std::exit and waits for the others.
  bool in_exit(const control_block& fiber) const noexcept {
    return exit_waiter_ != nullptr && exit_waiter_->fiber == &fiber;
  }
  /// Whether it is there because the main thread had to wait, and has had no other use: run() may
  /// take its place.
  bool began_by_waiting() const noexcept;
  void began_to_wait() noexcept { began_by_waiting_ = true; }
  /// Whether its main fiber is at home again when what it calls has returned.
  bool calls_main() const noexcept { return calls_main_; }
  void will_call_main() noexcept { calls_main_ = true; }
  /// For what waits also when it is interrupted.
  /// Throws: std::logic_error there.
  void check_may_wait() const {
    if (foreign_) throw std::logic_error("a fiber cannot wait on a foreign executor");
  }

  /// Looks at the inbox.
  void collect_mail() noexcept;

  /// Something pends that may wake a fiber (a transient one's counts only for polling).
  void pend(const control_block& fiber) noexcept { ++pending_[fiber.transient ? 1 : 0]; }
  void unpend(const control_block& fiber) noexcept { --pending_[fiber.transient ? 1 : 0]; }

  // What a switchpoint asks for: thread_core calls these.
  void look_around_now() noexcept;
  void poll(bool wait) noexcept;
  void rest_now() noexcept;
  void bury_now() noexcept;
  bool must_throw_now() noexcept;
  bool interrupts_wait() noexcept;
  [[noreturn]] void throw_what_is_pending();

 private:
  friend struct station;

  // heart/perform.cpp
  bool hand_over(pending_operation& pending) noexcept;
  [[gnu::noinline]] std::int32_t perform_elsewhere(pending_operation& pending) noexcept;
  bool called_elsewhere(int fd) noexcept;

  // heart/poll.cpp
  bool wait_awake() noexcept;
  [[gnu::always_inline]] void keep_time(bool waited) noexcept;
  clock::time_point end_of_sleep() noexcept;
  void fire_timers() noexcept;
  void complete(operation& op) noexcept;
  void set_countdown() noexcept;
  bool poll_overdue() const noexcept;

  // interruption/pending_throw.cpp
  speaker speaker_of(const control_block& fiber) noexcept;
  bool held(const control_block& fiber, lasting_interruption& about) noexcept;
  bool silenced(const scope& inner, unsigned shelter) noexcept;
  clock::time_point grace_end(const lasting_interruption& about) const noexcept;
  void end_grace_later(timer& alarm, const lasting_interruption& about) noexcept;
  void let_others_run_before(const lasting_interruption& about) noexcept;
  [[gnu::noinline]] void end_passed_limits_now() noexcept;
  void tell_of_swallowing(const control_block& fiber) noexcept;
  void tell(lasting_interruption& about) noexcept;
  void announce_up_to(const scope* ended) noexcept;
  [[noreturn]] void throw_failure();

  // process/dump_signal.cpp
  void report_running(void* context) const noexcept;
  const stack& stack_of(const control_block& fiber) const noexcept {
    return &fiber == main_ && fiber.runs_on.bottom == nullptr ? own_stack_ : fiber.runs_on;
  }
  void dump_as_asked() noexcept;

  // process/deadlock.cpp
  bool end_idle() noexcept;
  bool end_stuck(clock::time_point present);
  void report_deadlock(std::ostream& out);
  [[gnu::noinline]] void look_whether_stuck() noexcept;
  enum class company : std::uint8_t { none, workers, others };
  static company company_in_process() noexcept;

  void forget_others(control_block& caller) noexcept;

  // How a runtime ends.
  void close_mail() noexcept;
  void leave_out_main() noexcept;
  void check_nothing_left() const noexcept;
  void forget_failure(control_block& parent, control_block& failed) noexcept;
  void inherit_failure(control_block& fiber) noexcept;

  struct reaper;
  template <typename Body>
  void spin_for_the_house(Body&& body, const char* what);
  /// Throws: std::bad_alloc.
  void notice_later(std::string line);
  void start_reaper() noexcept;
  [[gnu::noinline]] void reap_later(control_block& dead) noexcept;
  void reap() noexcept;

  // life/fiber_end.cpp
  static void fiber_main(void* block);
  void live(control_block& self) noexcept;
  void run_body(control_block& self) noexcept;
  [[noreturn]] void end_child_process(control_block& self) noexcept;
  void publish(control_block& self) noexcept;
  void disarm_own(cold_part& part) noexcept;
  [[gnu::noinline]] void report_failure(control_block& failed) noexcept;
  bool note_failure(group_family& group, control_block& failed) noexcept;
  /// Forgets what next() and failures() could still tell, and who waits for room.
  void forget_ends(group_family& group) noexcept;
  [[gnu::noinline]] void tell_group(group_family& group, control_block& ended,
                                    bool in_hand) noexcept;
  void tell_news(group_family& group) noexcept;
  void leave_family(control_block& child) noexcept;
  void* room_for_block();
  [[gnu::noinline]] void* room_for_new_block();
  void free_block(control_block& block) noexcept;
  control_block* free_one(control_block& unreferred) noexcept;
  bool in_use_abroad(control_block& block) noexcept;
  bool shared(control_block& fiber) noexcept;
  bool unreferred(control_block& block) noexcept;
  void drop_result(control_block& fiber) noexcept;
  bool tell_awaiters(control_block& ended) noexcept;

  // Since when nobody has looked.
  std::size_t switches_since_poll_ = 0;
  std::size_t look_after_ = 0;
  std::size_t length_at_poll_ = 0;
  std::uint64_t polled_at_ = 0;  // in ticks
  std::uint64_t ticks_between_polls_;
  bool submitted_since_poll_ = false;
  waiting_awake waiting_awake_;
  tick_clock tick_clock_;
  timer_queue timers_;
  /// Its sleep, the grace of its handlers, and terminate().
  static constexpr std::size_t timers_of_a_fiber = 3;
  std::size_t timers_wanted_ = 0;
  in_flight operations_;
  std::size_t calls_elsewhere_ = 0;  // operations that a plain thread performs
  list<closing, closing_tag> closing_;

  std::unique_ptr<backend> kernel_;
  const bool virtual_time_;
  options options_;
  control_block* main_ = nullptr;
  bool main_left_out_ = false;
  wait_record* exit_waiter_ = nullptr;
  family house_;  // the reaper's: nobody's children
  list<control_block, fibers_tag> unreferred_;
  std::vector<value_slot> dropped_;
  bool reaping_ = false;
  std::uint64_t next_id_;
  std::uint64_t last_scope_ = 0;
  alternate_stack for_signals_;
  stack_pool stacks_;
  block_pool blocks_;
  // While nobody is runnable and nothing pends: when to say so, and when to look again at all.
  clock::time_point report_at_ = clock::time_point::max();
  clock::time_point idle_until_ = clock::time_point::max();
  clock::time_point look_for_others_at_ = clock::time_point::min();
  clock::duration between_looks_{};
  bool deadlock_reported_ = false;
  bool stuck_ = false;  // as far as is known
  bool takes_jobs_ = false;
  job_inbox* jobs_ = nullptr;  // until no more are taken
  const bool foreign_;
  int cancel_state_before_ = PTHREAD_CANCEL_ENABLE;  // of the thread, for pthread_cancel(3)
  bool calls_main_ = false;
  bool began_by_waiting_ = false;
  const pool_state* pool_ = nullptr;
  stack own_stack_;                       // the thread's; empty where no dump signal was chosen
  std::atomic<bool> dump_wanted_{false};  // set by a signal handler on this thread
  roster_entry place_{*this};
};

/// Returns: this thread's runtime, or null.
inline thread_state* self() noexcept {
  return static_cast<thread_state*>(self_core());
}

/// Returns: this thread's runtime, started now if there was none.
/// Throws: as begin_here().
inline thread_state& here() {
  return static_cast<thread_state&>(here_core());
}

inline thread_state& home_of(const control_block& fiber) noexcept {
  return static_cast<thread_state&>(*fiber.home);
}

/// Returns: its name, or its number if it has none.
std::string label_of(const control_block& fiber);
/// Returns: its name, perhaps empty. Any thread.
std::string_view name_of(const control_block& fiber) noexcept;

/// Destroys what a block that nobody refers to holds, but not its memory.
void destroy_block(control_block& block) noexcept;

/// Gives up a reference to a block whose thread has ended, and frees what is not referred to then.
void release_after_end(control_block& unreferred) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
