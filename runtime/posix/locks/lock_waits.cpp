// SPDX-License-Identifier: MIT
// See posix/locks/lock_waits.hpp.
#include "posix/locks/lock_waits.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <bit>
#include <cstdint>
#include <exception>
#include <string>

#include "core/store/fiber_store.hpp"
#include "core/time/park_until.hpp"
#include "unhandled/notice.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

thread_local constinit lock_waits lock_waits::present_;

/// The fibers of the parent's thread are not there, except the one that calls.
const int lock_waits::registered_for_fork = ::pthread_atfork(nullptr, nullptr, [] {
  present_.first_ = present_.last_ = nullptr;
  present_.reports_ = false;
});

lock_waiter::lock_waiter(const void* lock, const char* call, thread_state& home) noexcept
    : address_(lock), call_(call), home_(home) {
  lock_waits& waits = lock_waits::present_;
  previous_ = waits.last_;
  (previous_ == nullptr ? waits.first_ : previous_->next_) = this;
  waits.last_ = this;
}

/// Wakes the next waiter, which may get the lock as well: a reader, for instance.
lock_waiter::~lock_waiter() {
  lock_waits& waits = lock_waits::present_;
  (previous_ == nullptr ? waits.first_ : previous_->next_) = next_;
  (next_ == nullptr ? waits.last_ : next_->previous_) = previous_;
  waits.unlocked(address_);
}

bool lock_waiter::is_first() const noexcept {
  const lock_waiter* earlier = previous_;
  while (earlier != nullptr && earlier->address_ != address_) earlier = earlier->previous_;
  return earlier == nullptr;
}

void lock_waiter::await(clock::time_point due) noexcept {
  wait_record wait(call_, std::bit_cast<std::int64_t>(address_), wait_kind::object);
  wait.interruptible = false;
  wait_ = &wait;
  park_until(home_, wait, due);
  wait_ = nullptr;
}

lock_waiter* lock_waits::first_waiter(const void* address) const noexcept {
  lock_waiter* waiter = first_;
  while (waiter != nullptr && waiter->address_ != address) waiter = waiter->next_;
  return waiter;
}

void lock_waits::wake_first(const void* address) noexcept {
  lock_waiter* const waiter = first_waiter(address);
  if (waiter != nullptr && waiter->wait_ != nullptr)
    waiter->home_.resume(*waiter->wait_, wake_reason::handed);
}

/// Whether the lock's holder waits for a lock whose holder waits, and so on, for the fiber.
bool lock_waits::leads_to(std::uint64_t fiber, const void* address) noexcept {
  for (int steps = 0; address != nullptr && steps < 100; ++steps) {
    const lock_note& note = note_of(address);
    if (note.address != address) return false;
    if (note.fiber == fiber) return true;
    const lock_waiter* waiter = first_;
    while (waiter != nullptr && (waiter->wait_ == nullptr || waiter->wait_->fiber == nullptr ||
                                 waiter->wait_->fiber->id != note.fiber))
      waiter = waiter->next_;
    address = waiter == nullptr ? nullptr : waiter->address_;
  }
  return false;
}

namespace {

/// Returns: where a call was made, as "function+offset in file".
std::string text_of(const void* site) {
  Dl_info info{};
  if (::dladdr(site, &info) == 0 || info.dli_fname == nullptr) return "an unknown place";
  const auto distance_from = [&](const void* start) {
    return std::to_string(static_cast<const char*>(site) - static_cast<const char*>(start));
  };
  if (info.dli_sname == nullptr) return info.dli_fname + ("+" + distance_from(info.dli_fbase));
  return info.dli_sname + ("+" + distance_from(info.dli_saddr)) + " in " + info.dli_fname;
}

std::string label_of(std::uint64_t id, thread_state& home) {
  auto& fibers = home.fibers();
  for (auto* fiber = fibers.front(); fiber != nullptr; fiber = fibers.next(*fiber)) {
    if (fiber->id == id) return "fiber " + label_of(*fiber);
  }
  return "fiber " + std::to_string(id) + ", which has ended,";
}

}  // namespace

void lock_waits::report(const char* rule, const void* address, const char* call, const void* site,
                        thread_state& home) noexcept {
  if (reports_) return;
  reports_ = true;
  try {
    const lock_note holder = note_of(address);
    std::string text = "fiber " + detail::label_of(home.running()) + " calls " + call + "() at " +
                       text_of(site) + ": " + rule;
    if (holder.address == address)
      text += "; " + label_of(holder.fiber, home) + " locked it at " + text_of(holder.site);
    notice(home.settings(), text);
  } catch (const std::exception&) {
    notice(home.settings(), rule);
  }
  reports_ = false;
}

void lock_waits::report_cycle(const void* address, const char* call, const void* site,
                              thread_state& home) noexcept {
  if (leads_to(home.running().id, address))
    report("deadlock: the lock's holder waits for this fiber", address, call, site, home);
}

void lock_waits::report_block(const void* address, const char* call, const void* site,
                              thread_state& home) noexcept {
  report(
      "the thread blocks, because the fiber cannot switch here, and another fiber of the thread"
      " holds the lock",
      address, call, site, home);
}

}}}  // namespace motet::MOTET_ABI::detail
