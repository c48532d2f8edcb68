// SPDX-License-Identifier: MIT
// The fiber under a coroutine. A coroutine that waits for a motet object has handed the thread back
// to the fiber that runs it; this fiber, the driver, waits in its place, and resumes the coroutine.
// So everything that a coroutine does happens on one fiber, even after it has waited, and what
// interrupts that fiber is thrown where the coroutine waits. Avoids <coroutine>, which some of the
// compilers that build the library lack.
#pragma once

#include <exception>
#include <memory>
#include <motet/detail/sync/select_branch.hpp>
#include <motet/sync/event.hpp>
#include <utility>
#include <vector>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class coroutine_driver;
class suspended_coroutine;

/// What a coroutine waits for; its driver keeps it, as the coroutine may be destroyed meanwhile.
struct coroutine_wait {
  coroutine_wait() = default;
  coroutine_wait(const coroutine_wait&) = delete;
  coroutine_wait& operator=(const coroutine_wait&) = delete;
  virtual ~coroutine_wait() = default;
  virtual select_branch& branch() noexcept = 0;

  suspended_coroutine* coroutine = nullptr;  // null: it was destroyed
  coroutine_driver* driver = nullptr;        // null: its driver has not begun
};

template <typename Branch>
struct coroutine_wait_on final : coroutine_wait {
  explicit coroutine_wait_on(Branch&& branch) : selected_branch(std::move(branch)) {}
  select_branch& branch() noexcept override { return selected_branch; }
  Branch selected_branch;
};

/// A waiting coroutine, as part of its frame; to be destroyed on the thread on which it waits.
class suspended_coroutine {
 public:
  suspended_coroutine() = default;
  suspended_coroutine(const suspended_coroutine&) = delete;
  suspended_coroutine& operator=(const suspended_coroutine&) = delete;
  ~suspended_coroutine() {
    if (wait_ != nullptr) forget();
  }

  /// Resumes the coroutine; `error`, if not null, is thrown there.
  void resume_with(std::exception_ptr error);

 protected:
  /// Makes the running fiber's driver wait; without one, spawns a child as its driver.
  /// Throws: std::logic_error on a thread without fibers; as spin(); std::bad_alloc.
  void wait_for(std::unique_ptr<coroutine_wait> wait, void* frame, void (*resume)(void*));
  /// Throws: what has interrupted the wait.
  void throw_interruption() const {
    if (error_ != nullptr) std::rethrow_exception(error_);
  }

 private:
  friend class coroutine_driver;
  void forget() noexcept;

  coroutine_wait* wait_ = nullptr;
  void* frame_ = nullptr;
  void (*resume_)(void*) = nullptr;
  std::exception_ptr error_;
};

class coroutine_driver {
 public:
  /// Becomes the driver of the running fiber, in place of the one before.
  coroutine_driver();
  coroutine_driver(const coroutine_driver&) = delete;
  coroutine_driver& operator=(const coroutine_driver&) = delete;
  ~coroutine_driver();

  /// Throws: std::bad_alloc, and then the caller keeps `wait`.
  void add(std::unique_ptr<coroutine_wait>&& wait);
  /// A coroutine that waits has been destroyed.
  void note_destroyed() noexcept { change_.set(); }

  /// Resumes coroutines when their waits end, until `completion` is set or, without it, until none
  /// waits. Coroutines that wait after `completion` get another driver.
  /// Throws: the first exception thrown by the resumption of a coroutine.
  void run(event* completion);

 private:
  void forget_destroyed();
  void pass_on_rest() noexcept;
  void wait_once(event* completion);
  void resume(suspended_coroutine& coroutine, std::exception_ptr error);

  coroutine_driver* const predecessor_;
  std::vector<std::unique_ptr<coroutine_wait>> waits_;
  std::vector<select_branch*> branches_;
  event change_;
  std::exception_ptr failure_;
};

/// Returns: the running fiber, even if it has teleported.
const control_block& fiber_here();
/// Claims the failure of `dead` as await() does, without a switchpoint.
/// Throws: its failure; fiber_cancelled if it was cancelled.
control_block& outcome_of(const fiber_ref& dead);
/// Called in a handler on the fiber that runs a coroutine now.
/// Returns: the handled exception as seen by `waiter`, the fiber that awaits the coroutine.
std::exception_ptr failure_for(const control_block& waiter) noexcept;

}}}  // namespace motet::MOTET_ABI::detail
