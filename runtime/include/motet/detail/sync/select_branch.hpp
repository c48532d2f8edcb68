// SPDX-License-Identifier: MIT
// The interface of select() to a branch, and the branches that do not wait on a channel.
#pragma once

#include <cstddef>
#include <motet/base/clock.hpp>
#include <motet/detail/core/pending_operation.hpp>
#include <motet/detail/core/timer.hpp>
#include <motet/detail/sync/waiter.hpp>
#include <motet/fibers/fiber.hpp>
#include <motet/runtime/backend.hpp>
#include <span>
#include <vector>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class remote_awaiter;

/// A branch of a select(). As a wait node it is the waiter's place in the list of the channel,
/// fiber, descriptor or timer that the branch waits for. It is moved only outside of a select().
class select_branch : public wait_node {
 public:
  /// `any_thread`: another thread may choose this branch.
  explicit select_branch(bool any_thread) noexcept : shared(any_thread) {}
  select_branch& operator=(select_branch&&) = delete;

  /// Called when a select() begins with a branch that another one may have used.
  void begin() noexcept {}

  /// Takes the branch if that is possible without waiting.
  /// Returns: whether the branch was taken.
  virtual bool proceeds(thread_core& thread) = 0;
  /// Joins the list of waiters, unless the branch can be taken now.
  /// Returns: true if it can, and has not joined the list.
  virtual bool enter(thread_core& thread) = 0;
  /// Called when another branch was taken, or none.
  virtual void leave_list() noexcept = 0;
  /// Called when this branch was taken.
  virtual void finish() {}
  /// Whether the branch is taken only if no other branch can proceed.
  virtual bool is_time() const noexcept { return false; }

  template <typename F>
  void call(F& handler) {
    handler();
  }

  const bool shared;
  std::size_t index = 0;  // among the arguments
  bool entered = false;
  bool enabled = true;

 protected:
  /// Does not copy the state that a select() has left in the other branch.
  select_branch(const select_branch& other) noexcept
      : wait_node(), shared(other.shared), enabled(other.enabled) {}
  ~select_branch() = default;
};

class end_case final : public select_branch, private awaiter {
 public:
  /// Throws: std::logic_error for an empty handle.
  explicit end_case(fiber_ref fiber);
  end_case(end_case&& other) noexcept;

 private:
  bool proceeds(thread_core& thread) override;
  bool enter(thread_core& thread) override;
  void leave_list() noexcept override;
  void finish() override;

  fiber_ref fiber_;
  control_block* block_;
  remote_awaiter* remote_ = nullptr;  // for a fiber of another thread
};

class ready_case final : public select_branch {
 public:
  ready_case(int fd, short events) noexcept;
  ready_case(ready_case&& other) noexcept;

 private:
  bool proceeds(thread_core& thread) override;
  bool enter(thread_core& thread) override;
  void leave_list() noexcept override;
  void finish() override;

  struct poll_operation : pending_operation {
    using pending_operation::pending_operation;
    ready_case* branch = nullptr;
  };
  static void win_at_end(pending_operation& operation, thread_core& home) noexcept;

  operation op_;
  poll_operation poll_;
};

class time_case final : public select_branch {
 public:
  explicit time_case(clock::duration span);
  time_case(time_case&& other) noexcept;
  void begin() noexcept;

 private:
  bool proceeds(thread_core& thread) override;
  bool enter(thread_core& thread) override;
  void leave_list() noexcept override;
  void finish() override;
  bool is_time() const noexcept override { return true; }

  struct alarm : timer {
    time_case* branch = nullptr;
  };
  clock::duration span_;
  alarm alarm_;
};

[[noreturn]] void refuse_to_select_nothing();

/// Waits until one of `branches` can proceed, lets it proceed, and, after a wait, calls its
/// finish(). Shuffles `branches` unless `as_they_are`. `description` names the wait in dumps.
/// Returns: that branch.
/// Throws: a pending interruption; what a branch throws.
select_branch& select_one(std::span<select_branch*> branches, bool as_they_are,
                          const char* description = "select");
select_branch& select_one_of(std::vector<select_branch*>& branches, bool as_they_are);

}}}  // namespace motet::MOTET_ABI::detail
