// SPDX-License-Identifier: MIT
// A fiber that is away from home. Its stack goes from thread to thread, its control block stays:
// so every handle, its parent, its children and whoever awaits it find it where it always was. On
// another thread its stack runs as a fiber of that one, which lends it its control block.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <motet/detail/ground/process.hpp>
#include <motet/detail/heart/cold_part.hpp>
#include <motet/detail/waiting/sharing.hpp>
#include <motet/detail/words/post.hpp>
#include <motet/executor.hpp>
#include <optional>

#include "heart/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct forwarded;
struct journey;
struct visit;

/// What of a fiber is neither in its frames nor in its family.
struct baggage {
  stack runs_on;
  exception_state exceptions;
  int error_number = 0;
  std::uint16_t shields = 0;
  scope_entry* scopes = nullptr;
  local_list locals;
};

/// That the fiber is to end.
struct end_request {
  bool asked = false;
  bool insisted = false;
  const char* reason = nullptr;
  lasting_interruption about;
};

/// A place where the traveller runs, or has run and has left something: home, or in the frame of a
/// fiber of another thread. Its code waits on a stack of its own while the traveller's runs here.
struct station {
  station(journey& made_by, thread_state& there, control_block& as) noexcept;
  station(const station&) = delete;
  station& operator=(const station&) = delete;

  bool is_home() const noexcept;
  /// Whether the traveller can come back here.
  bool lasts() const noexcept { return is_home() || origins > 0 || leaves_children(); }
  /// Whether what is served there expects the traveller to leave for good.
  bool must_be_left() const noexcept { return thread.foreign || of != nullptr; }

  // Of home, whose code needs a stack while the traveller has another place.
  /// Throws: stack_unavailable, std::bad_alloc.
  void open();
  void close() noexcept;
  /// Whether the traveller, let run here, has no other place: then home is closed.
  bool ends_here() const noexcept;
  /// Returns when the traveller has left again; if it ends here, never.
  void let_run() noexcept;
  /// The traveller has left its stack: it goes where it wants to.
  /// Returns: false if it is gone for good; true when it is to run here.
  bool send_on() noexcept;
  /// On its thread: there may be word for the traveller, which is on its way from here.
  void look() noexcept;

  void enlist() noexcept;
  void unlist() noexcept;
  /// Room for the timers of its scopes: what a traveller leaves where it may come back to is kept.
  /// Throws: std::bad_alloc.
  void keep_timers(std::size_t count);
  /// What has been left for the traveller, which is here.
  void apply(forwarded&& news) noexcept;
  /// What has come for the block is left for the traveller.
  void pass_on() noexcept;

  journey& whose;
  thread_state& thread;
  control_block& block;
  station* next = nullptr;         // of the journey
  unsigned origins = 0;            // portals that lead back here
  std::optional<executor> served;  // the one by which it came
  visit* of = nullptr;             // to a fiber that goes on when the traveller has left

  context waiting;
  baggage own;  // while the traveller runs here
  bool lent_end = false;

  // While the traveller is elsewhere.
  std::size_t timers = 0;  // kept for its scopes
  bool cancelled = false;  // the block has been, by its own thread
  struct homing : post {
    station* to = nullptr;
  } returning;
  bool back = false;
  bool expected = false;  // the traveller is about to come, to end it
  wait_record* away = nullptr;
  struct recall_timer : timer {
    station* from = nullptr;
  } recall;  // when the first of its scopes ends, should it still be on its way

 private:
  static void begin(void* home);
  bool leaves_children() const noexcept;
  bool only_for_children() const noexcept { return !is_home() && origins == 0; }
  void unlist_locked() noexcept;
  void take_leave() noexcept;
  bool post_on() noexcept;
  bool await_back() noexcept;
  void await_news() noexcept;
  bool call_back() noexcept;
  clock::time_point recall_at() noexcept;
  bool try_to_leave() noexcept;
  // travel/baggage.cpp
  void board() noexcept;
  void alight() noexcept;
  void unpack_scopes() noexcept;
  void pack_scopes() noexcept;
  void arm_or_fire(timer& alarm) noexcept;
  void lend_end() noexcept;
  void take_back_end() noexcept;
  void take_result() noexcept;
};

/// What has been asked of the fiber at home, and is to reach it where it is.
struct forwarded {
  std::exception_ptr raised;
  std::list<std::exception_ptr> failures;  // of children
  value_slot token;
  bool token_given = false;
  bool stops = false;  // one of its scopes may have to end
  end_request end;
};

struct journey {
  explicit journey(control_block& traveller) noexcept;

  control_block& fiber;  // at home
  std::atomic<unsigned> references{1};
  /// A forked child has no other thread.
  const std::uint32_t made_in = this_process();
  station home;
  station* stations = &home;
  std::exception_ptr told;  // a child's failure, which was raised in it

  // Of the traveller while it does not run; what is its block's, while it does.
  context where;
  baggage its;
  end_request end;
  clock::time_point then{};  // by the clock of the thread it left
  bool then_virtual = false;
  clock::time_point due{};  // by that clock: when the first of its scopes ends

  // Where it wants to go next, and what came of that.
  std::shared_ptr<hop> leaving;
  station* back_to = nullptr;
  std::exception_ptr refused;
  bool called_back = false;
  // At home.
  bool home_open = false;
  bool home_closes = false;  // when the traveller has gone on there
  bool away = false;

  std::atomic<std::uint64_t> on_its_way{0};  // the number of the hop; 0: somebody has it

  mutable any_thread sharing;  // guards:
  std::uint64_t hops = 0;
  forwarded left;
  value_slot result;          // that stop() gave
  station* at = &home;        // null: on its way
  station* sender = nullptr;  // then, if it is not being sent back: who can call it back
  bool wanted = false;        // and ought to
  struct nudge_post : post {
    journey* whose = nullptr;
  } nudge;
  bool nudged = false;
};

/// One try to get somewhere.
struct hop {
  hop(station& from, const executor& where, bool returns) noexcept;
  hop(const hop&) = delete;
  hop& operator=(const hop&) = delete;
  ~hop();

  /// Returns: whether the traveller is the caller's now.
  bool claim() noexcept {
    std::uint64_t mine = number;
    return mine != 0 && its.on_its_way.compare_exchange_strong(mine, 0, std::memory_order_acq_rel);
  }

  journey& its;
  const executor to;
  const control_block* const poster;
  station& origin;           // where it is told that nobody took it
  std::uint64_t number = 0;  // since it has been sent
  bool has_room = false;
  bool posting = true;   // seen by the poster's thread alone
  bool at_once = false;  // the function was called by post() itself
};

/// What an executor refers to is nobody else's business.
struct executor_access {
  static bool same(const executor& a, const executor& b) noexcept {
    return a.where_ == b.where_ && a.kind_ == b.kind_;
  }
  static bool is_here(const executor& to) { return to.kind_->is_here(to.where_); }
  static bool take_room(const executor& to, const journey& traveller) {
    return to.kind_->take_room != nullptr && to.kind_->take_room(to.where_, traveller);
  }
  static void send(const executor& to, const arrival& fiber) { to.kind_->send(to.where_, fiber); }
};

void retain(journey& kept) noexcept;
/// Returns: its station there; or null.
station* place_on(journey& its, const thread_state& thread) noexcept;
void release(journey& used) noexcept;

inline bool in_this_process(const journey& its) noexcept {
  return its.made_in == this_process();
}

/// Whether it has a place on a thread of that pool.
bool has_place_in(const journey& its, const pool_state* pool) noexcept;
/// The function of an executor has been called; `alone`: by a fiber that was made for that.
void arrive(hop& mine, bool alone) noexcept;
/// Leaves word for the traveller, and has the thread look that it is on, or that can call it back.
void forward(journey& to, forwarded&& news) noexcept;
/// Adds to what has been left for it. Under its lock.
void merge(forwarded& into, forwarded&& more) noexcept;
/// Has that thread look. Under its lock.
void nudge(journey& its) noexcept;
/// Lets it run here, in a fiber that was made for that, until it leaves; `of` is then told.
void receive(const hop& mine, thread_state& here, visit* of = nullptr) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
