// SPDX-License-Identifier: MIT
// What select() knows of a branch, and the branches that are not channels'.
#pragma once

#include <cstddef>
#include <motet/backend.hpp>
#include <motet/clock.hpp>
#include <motet/detail/heart/pending_operation.hpp>
#include <motet/detail/heart/timer.hpp>
#include <motet/detail/waiting/waiter.hpp>
#include <motet/fiber.hpp>
#include <span>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class distant_awaiter;

/// Its place among those who wait for the thing it is about; stays where it was made.
class select_branch : public waiter {
 public:
  /// `any_thread`: another thread may choose it.
  explicit select_branch(bool any_thread) noexcept : shared(any_thread) {}
  select_branch(select_branch&&) = delete;
  select_branch& operator=(select_branch&&) = delete;

  /// Returns: true, and has done what it is about, if that needs no waiting.
  virtual bool proceeds(thread_core& thread) = 0;
  /// Joins those who wait.
  /// Returns: true, and has not, if it could proceed by now.
  virtual bool enter(thread_core& thread) = 0;
  /// Another one was taken, or none.
  virtual void leave_list() noexcept = 0;
  /// This one was taken.
  virtual void finish() {}
  /// Is taken only if no other can proceed.
  virtual bool is_time() const noexcept { return false; }

  template <typename F>
  void call(F& then) {
    then();
  }

  const bool shared;
  std::size_t index = 0;  // among the arguments
  bool entered = false;

 protected:
  ~select_branch() = default;
};

class end_case final : public select_branch, private awaiter {
 public:
  /// Throws: std::logic_error for an empty handle.
  explicit end_case(fiber_ref awaited);

 private:
  bool proceeds(thread_core& thread) override;
  bool enter(thread_core& thread) override;
  void leave_list() noexcept override;
  void finish() override;

  fiber_ref fiber_;
  control_block* block_;
  distant_awaiter* distant_ = nullptr;  // if it is a fiber of another thread
};

class ready_case final : public select_branch {
 public:
  ready_case(int fd, short events) noexcept;

 private:
  bool proceeds(thread_core& thread) override;
  bool enter(thread_core& thread) override;
  void leave_list() noexcept override;
  void finish() override;

  struct watch : pending_operation {
    using pending_operation::pending_operation;
    ready_case* of = nullptr;
  };
  static void win_at_end(pending_operation& ended, thread_core& home) noexcept;

  operation op_;
  watch pending_;
};

class time_case final : public select_branch {
 public:
  explicit time_case(clock::duration span);

 private:
  bool proceeds(thread_core& thread) override;
  bool enter(thread_core& thread) override;
  void leave_list() noexcept override;
  void finish() override;
  bool is_time() const noexcept override { return true; }

  struct alarm : timer {
    time_case* of = nullptr;
  };
  alarm alarm_;
};

/// Waits for one of `branches`, which it puts in another order; runs finish() of that one.
/// Returns: the one that was taken.
/// Throws: what is pending for the fiber; what a branch throws; std::invalid_argument if there is
///         none.
select_branch& take_one(std::span<select_branch*> branches, bool as_they_are);

}}}  // namespace motet::MOTET_ABI::detail
