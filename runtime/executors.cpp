// SPDX-License-Identifier: MIT
// What a fiber asks of motet's own executors before it goes there, and how it is sent.
#include <motet/executor.hpp>
#include <motet/thread.hpp>
#include <utility>

#include "pool_state.hpp"
#include "thread_link.hpp"

namespace motet::inline MOTET_ABI::detail {

bool runs_here(const thread& where) {
  return runs_here(*where.link());
}

bool runs_here(const thread_pool& where) {
  return where.on_own_thread();
}

bool runs_here(const strand& where) noexcept {
  return runs_here(where.pool_->worker(where.worker_));
}

void take_room(const thread_pool& where) {
  where.enter();
}

void take_room(const strand& where) {
  where.pool_->enter();
}

void give(const thread_pool& where, const arrival& fiber) {
  where.check_entered();
  where.give_to(where.choose(), posted_work<arrival>(std::in_place, fiber), call_site::here());
}

void give(const strand& where, const arrival& fiber) {
  const thread_pool& pool = *where.pool_;
  pool.check_entered();
  pool.give_to(pool.choose(where.worker_), posted_work<arrival>(std::in_place, fiber),
               call_site::here());
}

}  // namespace motet::inline MOTET_ABI::detail
