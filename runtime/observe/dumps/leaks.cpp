// SPDX-License-Identifier: MIT
// See observe/dumps/leaks.hpp. A fiber that waits for a lock, or for the end of another fiber,
// depends on exactly one fiber. So a walk along these dependencies is a chain, which ends at a
// fiber that something else may wake, at one that nothing can wake, or in a cycle.
#include "observe/dumps/leaks.hpp"

#include <ostream>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/thread_state.hpp"
#include "migration/journey.hpp"
#include "observe/dumps/dump.hpp"
#include "observe/dumps/lock_holders.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// Why a fiber waits for ever; null: it may not.
using reason = const char*;

constexpr reason holder_has_ended = "the holder of its lock has ended";
constexpr reason has_no_handle = "nobody has a handle to it";
constexpr reason in_a_circle = "they wait for one another";
constexpr reason behind_another = "what it waits for will not come";

/// One step of the walk: the fiber that is waited for, or the reason why this wait never ends.
struct step {
  control_block* target = nullptr;
  reason cause = nullptr;
};

class leak_search {
 public:
  explicit leak_search(thread_state& thread) : thread_(thread), holders_(thread) {
    thread.time.each([this](const timer& alarm) { sleepers_.insert(alarm.fiber); });
  }

  reason of(control_block& fiber) {
    std::vector<control_block*> path;
    std::unordered_set<const control_block*> on_the_way;
    control_block* position = &fiber;
    reason result = nullptr;
    for (;;) {
      if (const auto entry = reasons_.find(position); entry != reasons_.end()) {
        result = entry->second == nullptr ? nullptr : behind_another;
        break;
      }
      if (!on_the_way.insert(position).second) {
        result = in_a_circle;
        break;
      }
      path.push_back(position);
      const step next = step_from(*position);
      if (next.target == nullptr) {
        reasons_[position] = next.cause;
        path.pop_back();
        result = next.cause == nullptr ? nullptr : behind_another;
        break;
      }
      position = next.target;
    }
    settle(path, *position, result);
    return reasons_.at(&fiber);
  }

  lock_holders& holders() noexcept { return holders_; }

 private:
  /// The walk has ended at `end`. Fibers before the start of a cycle wait behind it.
  void settle(const std::vector<control_block*>& path, const control_block& end, reason result) {
    bool in_circle = false;
    for (control_block* member : path) {
      if (result == in_a_circle && member == &end) in_circle = true;
      reasons_[member] = result == in_a_circle && !in_circle ? behind_another : result;
    }
  }

  step step_from(control_block& fiber) {
    if (may_be_woken(fiber)) return {};
    const wait_record& wait = *fiber.wait;
    if (wait.for_lock()) return to_holder(wait);
    if (wait.for_token()) return {nullptr, is_referred_to(fiber) ? nullptr : has_no_handle};
    if (wait.target == nullptr || !is_here(**wait.target)) return {};
    return {*wait.target, nullptr};
  }

  step to_holder(const wait_record& wait) {
    const auto holder = holders_.of(wait);
    if (!holder) return {};
    switch (holder->type) {
      case lock_holder::kind::main_fiber:
        return {&thread_.main_fiber(), nullptr};
      case lock_holder::kind::other_thread:
        return {};
      case lock_holder::kind::fiber:
        if (holder->ended) return {nullptr, holder_has_ended};
        return {const_cast<control_block*>(holder->block), nullptr};
    }
    return {};
  }

  /// By a handle; or by a child, which can have one.
  static bool is_referred_to(const control_block& fiber) noexcept {
    return fiber.is_main || fiber.references > 1;
  }

  bool is_here(const control_block& fiber) const noexcept {
    return thread_.is_home_of(fiber) && !fiber.dead();
  }

  /// By a timer, by another thread, or immediately.
  bool may_be_woken(const control_block& fiber) const {
    const wait_record* wait = wait_of(fiber);
    if (wait == nullptr || wait->ended() != wake_reason::none) return true;
    if (fiber.hosts || wait->description == its_stack)
      return true;  // a traveller's handles are elsewhere
    return fiber.known_remotely.load(std::memory_order_relaxed) || is_timed(fiber);
  }

  /// A limit of the fiber that waits for its end ends it, too.
  bool is_timed(const control_block& fiber) const {
    if (sleepers_.contains(&fiber)) return true;
    for (const control_block* ancestor = &fiber; ancestor != nullptr; ancestor = ancestor->parent) {
      if (!thread_.is_home_of(*ancestor) || has_limit(*ancestor)) return true;
    }
    return false;
  }

  /// A limit of time, or a stop token, which any thread may have.
  static bool has_limit(const control_block& fiber) noexcept {
    for (const scope_entry* entry = fiber.scopes; entry != nullptr; entry = entry->outer) {
      if (entry->kind != scope_kind::ends) continue;
      const auto& limit = static_cast<const scope&>(*entry);
      if (limit.alarm.armed() || limit.asked_remotely != nullptr) return true;
    }
    return false;
  }

  thread_state& thread_;
  lock_holders holders_;
  std::unordered_set<const control_block*> sleepers_;
  std::unordered_map<const control_block*, reason> reasons_;
};

}  // namespace

std::size_t dump_leaks(thread_state& thread, std::ostream& output) {
  const clock::time_point present = thread.kernel().now();
  leak_search search(thread);
  std::size_t leaks = 0;
  auto& fibers = thread.fibers();
  for (control_block* fiber = fibers.front(); fiber != nullptr; fiber = fibers.next(*fiber)) {
    const reason cause = search.of(*fiber);
    if (cause == nullptr) continue;
    dump_line(output, thread, *fiber, search.holders(), present);
    output << ": for ever, " << cause << '\n';
    ++leaks;
  }
  return leaks;
}

}}}  // namespace motet::MOTET_ABI::detail
