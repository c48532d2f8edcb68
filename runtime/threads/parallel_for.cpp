// SPDX-License-Identifier: MIT
// See motet/threads/parallel.hpp, and threads/shared_loop.hpp for how a loop ends. The caller does
// not wait for jobs that have not begun: these find nothing left, and do not touch its frame.
#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <motet/cancellation/cancel.hpp>
#include <motet/detail/core/inherited_locals.hpp>
#include <motet/detail/core/internal_shield.hpp>
#include <motet/detail/threads/loop_body.hpp>
#include <motet/fibers/fiber.hpp>
#include <motet/fibers/group.hpp>
#include <motet/threads/thread_pool.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/thread_state.hpp"
#include "platform/simulated_threads.hpp"
#include "platform/ticks.hpp"
#include "threads/pool_state.hpp"
#include "threads/shared_loop.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// Long enough that claiming a block costs next to nothing, and short enough that the last blocks
/// end together.
constexpr auto block_time = std::chrono::microseconds(20);

/// A loop, and what a call of its body needs.
struct called_loop : shared_loop {
  called_loop(std::size_t count, loop_body of_caller, std::size_t helpers)
      : shared_loop(count, helpers), body(of_caller) {}
  const loop_body body;
  /// Not measured in a simulation, in which real time must decide nothing.
  const bool is_simulated = simulated_threads::present() != nullptr;
  const std::uint64_t block_ticks = ticks_in(block_time);
};

/// Calls the body for a block.
/// Returns: the size for the next one.
std::size_t call_block(called_loop& loop, shared_loop::block block, std::size_t size) {
  const std::uint64_t begin = ticks();
  loop.body.call(loop.body.body, block.first, block.last);
  const std::uint64_t duration = loop.is_simulated ? 0 : ticks() - begin;
  if (duration < loop.block_ticks / 2) size *= 2;
  if (duration > loop.block_ticks * 2) size /= 2;
  return std::clamp<std::size_t>(size, 1, loop.largest_block());
}

/// Calls the body for one block after another. Between two blocks the helper is not busy, so that
/// other fibers of its thread may delay it; unless it has children, which may use the caller's
/// frame.
/// Throws: what the body throws; std::bad_alloc.
void call_blocks(called_loop& loop) {
  if (loop.is_exhausted()) return;
  move_on_when_stopped(loop.stop_token(), [&loop] {
    std::size_t size = 1;
    for (auto block = loop.claim(size); !block.empty(); block = loop.claim(size)) {
      size = call_block(loop, block, size);
      const bool stays_busy = self()->running().has_cold_part;
      if (!stays_busy) loop.end_block();
      self()->checkpoint();
      if (!stays_busy) loop.begin_block();
    }
  });
}

/// A worker's part in a loop.
class helper_job : public pool_job {
 public:
  explicit helper_job(std::shared_ptr<called_loop> loop) noexcept : loop_(std::move(loop)) {}
  helper_job(helper_job&&) noexcept = default;
  ~helper_job() { settle(*this); }

  void operator()() noexcept { call(*this); }

 private:
  friend pool_job;
  void run() {
    begun_ = true;
    loop_->begin_block();
    call_blocks(*loop_);
  }
  void fail(const worker_load&, std::exception_ptr error) noexcept {
    loop_->fail(as_seen_by_others(std::move(error), "a call of parallel_for()"));
  }
  void mark_undone() noexcept {}
  static constexpr bool has_slot() noexcept { return false; }
  void drop() noexcept {}
  void publish() noexcept { begun_ ? loop_->end_help() : loop_->withdraw(); }

  std::shared_ptr<called_loop> loop_;
  bool begun_ = false;
};

/// The caller's own part. It ends with its fiber, even if that was cancelled before it began.
class own_part {
 public:
  explicit own_part(called_loop& loop) noexcept : loop_(&loop) { loop.begin_block(); }
  own_part(own_part&& other) noexcept : loop_(std::exchange(other.loop_, nullptr)) {}
  own_part& operator=(own_part&&) = delete;
  ~own_part() {
    if (loop_ != nullptr) loop_->end_help();
  }

  /// In a fiber of its own, whose children have ended when it ends.
  void operator()() const noexcept {
    try {
      spin([this] { call_blocks(*loop_); }).await();
    } catch (...) {
      loop_->fail(as_seen_by_others(std::current_exception(), "a call of parallel_for()"));
    }
  }

 private:
  called_loop* loop_;
};

/// The calling worker does not keep a helper: it has a part of its own.
void give_helper(pool_state& pool, const std::shared_ptr<called_loop>& loop, call_site site) {
  auto item = job_slot::holding(helper_job(loop), site, true);
  auto& job = item.template function<helper_job>();
  pool.give(std::move(item), job, inherited_here(), least_loaded);
}

}  // namespace

void check_may_wait_here(const char* function) {
  if (read_self() == ended_mark)
    throw std::logic_error(std::string(function) + "(): this thread's runtime has ended");
  if (const thread_state* const home = self()) home->check_may_wait();
}

std::size_t workers_of(const thread_pool& pool) noexcept {
  return pool.workers();
}

void call_in_blocks(thread_pool& pool, std::size_t count, loop_body body, call_site site) {
  check_may_wait_here("parallel_for");
  thread_state* const home = self();
  if (home != nullptr) home->deliver();
  pool.check_running();
  if (!pool.in_this_process()) throw executor_stopped();
  if (count > shared_loop::most_elements)
    throw std::length_error("parallel_for: a range may have at most SIZE_MAX / 2 elements");
  if (count == 0) return;
  const std::shared_ptr<pool_state> state = pool.state_;
  const bool is_worker = state->on_worker();
  const std::size_t helpers = std::min(state->count, count);
  const auto loop = std::make_shared<called_loop>(count, body, helpers);
  std::optional<group> own;
  try {
    if (is_worker) own.emplace().spin(own_part(*loop), site);
    for (std::size_t i = is_worker ? 1 : 0; i < helpers; ++i) give_helper(*state, loop, site);
    loop->await_end();
    if (own) {
      const internal_shield safe;
      own->await_all();
    }
  } catch (...) {
    loop->abandon();
    throw;
  }
}

}}}  // namespace motet::MOTET_ABI::detail
