// SPDX-License-Identifier: MIT
// A traveller is a fiber that is away from home. Its stack goes from thread to thread, its control
// block stays at home: so its handles, parent, children and awaiters find the block where it always
// was. On another thread the stack runs as a fiber of that thread, which lends the traveller its
// own control block.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <motet/detail/base/atomic.hpp>
#include <motet/detail/base/post.hpp>
#include <motet/detail/core/cold_part.hpp>
#include <motet/detail/platform/process.hpp>
#include <motet/detail/sync/sharing.hpp>
#include <motet/threads/executor.hpp>
#include <optional>

#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// What a fiber waits for while its stack, or that of its guest, is on another thread.
inline constexpr char its_stack[] = "its stack, which is on another thread";

struct forwarded;
struct journey;
struct visit;

/// The state of a fiber that is neither in its frames nor in its family: it moves from block to
/// block with the traveller.
struct portable_state {
  stack runs_on;
  exception_state exceptions;
  int error_number = 0;
  std::uint16_t shields = 0;
  scope_entry* scopes = nullptr;
  local_list locals;
};

/// A cancellation of the traveller.
struct end_request {
  bool asked = false;
  bool escalated = false;
  lasting_interruption cause;
};

/// A block on which the traveller runs, or has run and left state: its home block, or the block of
/// a fiber of another thread, in whose frame the residence then is. While the traveller runs here,
/// the residence's own code waits on its own stack.
struct residence {
  residence(journey& made_by, thread_state& home_thread, control_block& host) noexcept;
  residence(const residence&) = delete;
  residence& operator=(const residence&) = delete;

  bool is_home() const noexcept;
  /// Whether the traveller may return here, so that the residence is kept when it leaves.
  bool lasts() const noexcept { return is_home() || portals > 0 || has_children(); }
  /// Whether the traveller must leave this residence for good: a foreign thread, or a fiber that
  /// serves an executor, goes on only when the traveller has left.
  bool must_be_left() const noexcept { return thread.foreign || stay != nullptr; }

  // Of the home residence, whose code needs a stack while the traveller has other residences.
  /// Throws: stack_unavailable, std::bad_alloc.
  void open();
  void close() noexcept;
  /// Whether this is home, and the traveller has no other residence: then home is closed.
  bool ends_here() const noexcept;
  /// Lets the traveller run here. Returns when it has left; never returns if it ends here.
  void let_run() noexcept;
  /// Sends the traveller, which has left its stack, to where its journey says.
  /// Returns: false if the traveller is gone for good; true when it is to run here.
  bool send_on() noexcept;
  /// Called on the residence's thread: wakes the residence's code, which looks whether the
  /// traveller is back, or is to be called back.
  void look() noexcept;

  [[gnu::noinline]] void note_server(const executor& server) noexcept;
  void enlist() noexcept;
  void unlist() noexcept;
  /// Keeps room for `count` timers of the traveller's scopes, also while the traveller is away.
  /// Throws: std::bad_alloc.
  void reserve_timers(std::size_t count);
  /// Delivers forwarded requests and failures to the traveller, which is here.
  void apply(forwarded&& news) noexcept;
  /// Forwards the requests and failures that have come for the residence's block to the traveller.
  void pass_on() noexcept;

  journey& trip;
  thread_state& thread;
  control_block& block;
  residence* next = nullptr;              // in the journey's list of residences
  unsigned portals = 0;                   // portals that lead back here
  std::optional<executor> host_executor;  // the executor by which the traveller came
  visit* stay = nullptr;                  // the visited fiber goes on when the traveller has left

  context own_context;
  portable_state own_state;  // of the residence's code, while the traveller runs here
  bool lent_end = false;

  // While the traveller is on another thread:
  std::size_t timers = 0;  // kept for the traveller's scopes
  bool cancelled = false;  // the block's own thread has cancelled it
  struct homing : post {
    residence* target = nullptr;
  } return_post;
  bool returned = false;
  bool expected = false;  // the traveller is about to come, to end this residence
  wait_record* absence = nullptr;
  struct recall_timer : timer {
    residence* owner = nullptr;
  } recall;  // due when the first of the traveller's scopes ends, if it is still on its way then

 private:
  static void begin(void* home);
  bool has_children() const noexcept;
  bool only_for_children() const noexcept { return !is_home() && portals == 0; }
  void unlist_locked() noexcept;
  void depart() noexcept;
  bool post_on() noexcept;
  bool await_back() noexcept;
  void await_news() noexcept;
  bool call_back() noexcept;
  clock::time_point recall_at() noexcept;
  bool try_to_leave() noexcept;
  // migration/portable_state.cpp
  void attach() noexcept;
  void detach() noexcept;
  bool crosses_clocks() const noexcept;
  void unpack_scopes() noexcept;
  void pack_scopes() noexcept;
  void arm_or_fire(timer& alarm) noexcept;
  void lend_end() noexcept;
  void reclaim_end() noexcept;
  void take_result() noexcept;
};

/// Requests to the fiber, and failures of its children, that came to its home or to another of its
/// residences, and are forwarded to the thread that the traveller is on.
struct forwarded {
  std::exception_ptr raised;
  std::list<std::exception_ptr> failures;  // of children
  value_slot token;
  bool token_given = false;
  bool stops = false;  // a scope of the traveller may have to end
  end_request end;
};

struct journey {
  explicit journey(control_block& traveller) noexcept;

  control_block& fiber;  // the traveller's block, at home
  atomic<unsigned> references{1};
  /// A forked child has no other thread.
  const std::uint32_t made_in = this_process();
  residence home;
  residence* residences = &home;
  std::exception_ptr raised_failure;  // a child's failure that was raised in the traveller

  // The traveller's state while it does not run; otherwise that is in the block it runs on.
  context saved_context;
  portable_state traveller_state;
  end_request end;
  struct departure_times {
    clock::time_point departed_at{};  // when it left its last thread
    clock::time_point due{};          // its earliest deadline
    bool is_virtual = false;
  } last_clock;  // by the last thread's clock

  // Where the traveller wants to go next, and how the try ended.
  std::shared_ptr<migration_attempt> departure;
  residence* back_to = nullptr;
  std::exception_ptr refusal;
  bool called_back = false;
  /// Of the home residence. `closing`: it is closed as soon as the traveller runs there.
  enum class home_state : std::uint8_t { closed, open, closing } home_stage = home_state::closed;
  bool absent = false;  // from home

  atomic<std::uint64_t> on_its_way{0};  // the number of the attempt; 0: not in transit

  mutable shared_policy sharing;  // guards:
  std::uint64_t attempts = 0;
  forwarded news;
  value_slot result;            // given by stop()
  residence* location = &home;  // null: the traveller is in transit
  residence* sender = nullptr;  // on its way: the residence that can call it back, or null
  bool wanted = false;          // the sender should call the traveller back
  struct nudge_post : post {
    journey* trip = nullptr;
  } nudge;
  bool nudged = false;
};

/// One try of a traveller to get to an executor.
struct migration_attempt {
  migration_attempt(residence& origin, const executor& destination, bool returns) noexcept;
  migration_attempt(const migration_attempt&) = delete;
  migration_attempt& operator=(const migration_attempt&) = delete;
  ~migration_attempt();

  /// Takes the traveller, unless the attempt is over or another thread has taken it.
  /// Returns: whether the caller has the traveller now.
  bool claim() noexcept {
    std::uint64_t attempt = number;
    return attempt != 0 &&
           trip.on_its_way.compare_exchange_strong(attempt, 0, std::memory_order_acq_rel);
  }

  journey& trip;
  const executor target;
  const control_block* const poster;
  residence& answers_to;     // the traveller's destination if no executor accepts it
  std::uint64_t number = 0;  // not 0 once the traveller has been sent
  bool has_slot = false;
  bool posting = true;   // read by the poster's thread alone
  bool at_once = false;  // the function was called by post() itself
};

/// The travelling code's access to what an executor refers to.
struct executor_access {
  static bool same(const executor& a, const executor& b) noexcept {
    return a.target_ == b.target_ && a.kind_ == b.kind_;
  }
  static bool is_here(const executor& target) { return target.kind_->is_here(target.target_); }
  static bool reserve_slot(const executor& target, const journey& traveller) {
    return target.kind_->reserve_slot != nullptr &&
           target.kind_->reserve_slot(target.target_, traveller);
  }
  static void send(const executor& target, const arrival& fiber) {
    target.kind_->send(target.target_, fiber);
  }
};

void retain(journey& trip) noexcept;
/// Returns: the traveller's residence on `thread`, or null.
residence* residence_on(journey& trip, const thread_state& thread) noexcept;
void release(journey& trip) noexcept;

inline bool in_this_process(const journey& trip) noexcept {
  return trip.made_in == this_process();
}

/// Whether the traveller has a residence on a thread of that pool.
bool has_residence_in(const journey& trip, const pool_state* pool) noexcept;
/// Called in the function posted to an executor; `alone`: on a fiber made for it.
void arrive(migration_attempt& attempt, bool alone) noexcept;
/// Leaves `news` for the traveller, and nudges its thread, or the one that can call it back.
void forward(journey& trip, forwarded&& news) noexcept;
/// Merges `news` into `target`. Called under the journey's lock.
void merge(forwarded& target, forwarded&& news) noexcept;
/// Posts to the thread that the traveller is on, or that can call it back, to look for news; `wake`
/// wakes it. Called under the journey's lock.
void nudge(journey& trip, mailbox::deferred_wake& wake) noexcept;
/// Runs the traveller in the calling fiber, which was made for it, until it leaves; then ends the
/// visit `stay`.
void receive(const migration_attempt& attempt, thread_state& thread,
             visit* stay = nullptr) noexcept;

// What the rooms below call; see core/hooks.hpp.

void end_journey(control_block& fiber) noexcept;
void go_to(journey& trip, const control_block& owner) noexcept;
std::exception_ptr failure_while_away(control_block& fiber) noexcept;
std::exception_ptr raised_too_late(control_block& fiber) noexcept;
void forward_stops(journey& trip) noexcept;
void forward_result(journey& trip, value_slot&& value) noexcept;
void dispose_journey(journey& trip) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
