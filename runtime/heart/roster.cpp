// SPDX-License-Identifier: MIT
// See heart/roster.hpp.
#include "heart/roster.hpp"

#include <unistd.h>

#include <motet/detail/heart/cold_part.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

constinit std::atomic<roster_place*> motet_roster{nullptr};
[[gnu::used]] constinit const slab_layout motet_slab_layout{
    block_slab::size, block_slab::first, block_slab::blocks, block_slab::cold_room};

namespace {

roster_place* take_free_place(pid_t thread) noexcept {
  for (roster_place* each = motet_roster.load(); each != nullptr; each = each->next) {
    pid_t nobody = 0;
    if (each->thread.compare_exchange_strong(nobody, thread)) return each;
  }
  return nullptr;
}

roster_place* add_place(pid_t thread) {
  auto* added = new roster_place;
  added->thread = thread;
  added->next = motet_roster.load();
  while (!motet_roster.compare_exchange_weak(added->next, added)) {
  }
  return added;
}

}  // namespace

roster_entry::roster_entry(thread_state& runtime) : place_(take_free_place(::gettid())) {
  if (place_ == nullptr) place_ = add_place(::gettid());
  enter(runtime);
}

void roster_entry::enter(thread_state& runtime) noexcept {
  place_->dump_asked = false;
  place_->runtime = &runtime;
  place_->thread = ::gettid();
}

roster_entry::~roster_entry() {
  place_->runtime = nullptr;
  place_->thread = 0;
}

void roster_entry::abandon_all() noexcept {
  for (roster_place* each = motet_roster.load(); each != nullptr; each = each->next) {
    each->runtime = nullptr;
    each->thread = 0;
  }
}

}}}  // namespace motet::MOTET_ABI::detail
