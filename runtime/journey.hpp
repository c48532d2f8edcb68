// SPDX-License-Identifier: MIT
// A fiber that is away from home. Its stack goes from thread to thread, its control block stays:
// so every handle, its parent, its children and whoever awaits it find it where it always was. On
// another thread its stack runs as a fiber of that one, which lends it its control block.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <motet/detail/cold_part.hpp>
#include <motet/detail/post.hpp>
#include <motet/detail/sharing.hpp>
#include <motet/executor.hpp>
#include <optional>

#include "thread_state.hpp"

namespace motet::inline MOTET_ABI::detail {

struct journey;
struct forwarded;

/// A place where the traveller runs, or has run and has left something: home, or in the frame of a
/// fiber of another thread. Its code waits on a stack of its own while the traveller's runs here.
struct station {
  station(journey& made_by, thread_state& there, control_block& as) noexcept;
  station(const station&) = delete;
  station& operator=(const station&) = delete;

  bool is_home() const noexcept;
  /// Whether the traveller can come back here.
  bool lasts() const noexcept { return is_home() || origins > 0 || leaves_children(); }

  // Of home, whose code needs a stack while the traveller has another place.
  /// Throws: stack_unavailable.
  void open();
  void close() noexcept;
  /// Whether the traveller, let run here, has no other place: then home is closed.
  bool ends_here() const noexcept;
  /// Returns when the traveller has left again; if it ends here, never.
  void let_run() noexcept;
  /// The traveller has left its stack: it goes where it wants to.
  /// Returns: false if it is gone for good; true when it is to run here.
  bool send_on() noexcept;

  void enlist() noexcept;
  void unlist() noexcept;
  /// Room for the timers of its scopes: what a traveller leaves where it may come back to is kept.
  /// Throws: std::bad_alloc.
  void keep_timers(std::size_t count);
  /// What has been left for the traveller, which is here.
  void apply(forwarded&& news) noexcept;

  journey& whose;
  thread_state& thread;
  control_block& block;
  station* next = nullptr;          // of the journey
  unsigned origins = 0;             // portals that lead back here
  std::optional<executor> foreign;  // the executor that is served there

  // Its own, while the traveller runs here.
  context waiting;
  stack runs_on;
  exception_state exceptions;
  int error_number = 0;
  std::uint16_t shields = 0;
  scope_entry* scopes = nullptr;
  local_list locals;
  bool lent_cancellation = false;

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
  std::uint64_t last_hop = 0;

 private:
  static void begin(void* home);
  bool leaves_children() const noexcept;
  void take_leave() noexcept;
  bool post_on() noexcept;
  bool call_back() noexcept;
  bool await_back() noexcept;
  bool try_to_leave() noexcept;
  // baggage.cpp
  void board() noexcept;
  void alight() noexcept;
  void arm_or_fire(timer& alarm) noexcept;
  void lend_cancellation() noexcept;
  void take_back_cancellation() noexcept;
  void take_result() noexcept;
  void pass_on() noexcept;
};

/// What has been asked of the fiber at home, and is to reach it where it is.
struct forwarded {
  std::exception_ptr raised;
  std::exception_ptr failure;  // of a child
  value_slot token;
  bool token_given = false;
  bool stops = false;  // one of its scopes may have to end
  bool cancelled = false;
  bool insisted = false;
  const char* cancel_reason = nullptr;
  lasting_interruption cancellation;
};

struct journey {
  explicit journey(control_block& traveller) noexcept;

  control_block& fiber;  // at home
  std::atomic<unsigned> references{1};
  /// A forked child has no other thread.
  const std::uint32_t made_in = process_generation.load(std::memory_order_relaxed);
  station home;
  station* stations = &home;
  std::exception_ptr failure;  // of a child abroad, which ends the fiber
  std::exception_ptr told;     // another one's, which was raised in it

  // The baggage: of the traveller while it does not run, of its block while it does.
  context where;
  stack runs_on;
  exception_state exceptions;
  int error_number = 0;
  std::uint16_t shields = 0;
  scope_entry* scopes = nullptr;
  clock::time_point then{};  // by the clock of the thread it left
  bool then_virtual = false;
  local_list locals;
  bool cancelled = false;
  bool insisted = false;
  const char* cancel_reason = nullptr;
  lasting_interruption cancellation;

  // Where it wants to go next, and what came of that.
  const executor* to = nullptr;
  station* back_to = nullptr;
  std::exception_ptr refused;
  bool called_back = false;
  // At home.
  bool home_open = false;
  bool home_closes = false;  // when the traveller has gone on there
  bool away = false;

  std::atomic<std::uint64_t> on_its_way{0};  // the number of the hop; 0: somebody has it
  std::uint64_t hops = 0;

  any_thread sharing;  // guards:
  forwarded left;
  value_slot result;    // that stop() gave
  station* at = &home;  // null: on its way
  struct nudge_post : post {
    journey* whose = nullptr;
  } nudge;
  bool nudged = false;
};

/// One try to get somewhere.
struct hop {
  hop(station& from, const executor& where) noexcept;
  hop(const hop&) = delete;
  hop& operator=(const hop&) = delete;
  ~hop();

  /// Returns: whether the traveller is the caller's now.
  bool claim() noexcept {
    std::uint64_t mine = number;
    return its.on_its_way.compare_exchange_strong(mine, 0, std::memory_order_acq_rel);
  }

  journey& its;
  const std::uint64_t number;
  station& origin;  // where it is told that nobody took it
  const executor to;
  const control_block* const poster;
  bool posting = true;   // seen by the poster's thread alone
  bool at_once = false;  // the function was called by post() itself
};

/// What an executor refers to is nobody else's business.
struct executor_access {
  static bool same(const executor& a, const executor& b) noexcept {
    return a.where_ == b.where_ && a.kind_ == b.kind_;
  }
  static bool is_here(const executor& to) { return to.kind_->is_here(to.where_); }
  static void send(const executor& to, const arrival& fiber) { to.kind_->send(to.where_, fiber); }
};

void retain(journey& kept) noexcept;
void release(journey& used) noexcept;

/// Leaves word for the traveller, and has the thread it is on look.
void forward(journey& to, forwarded&& news) noexcept;
/// It could not go on where it wanted to.
void send_home(journey& its, std::exception_ptr why) noexcept;
/// Lets it run here, in a fiber that was made for that, until it leaves.
void receive(const hop& mine, thread_state& here) noexcept;

}  // namespace motet::inline MOTET_ABI::detail
