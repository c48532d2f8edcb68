// SPDX-License-Identifier: MIT
// The threads of a simulated world. They are real, but only the one that has the baton runs: so all
// that the threads share is used by one at a time, and what happens can be repeated. A thread
// passes the baton where it switches, where it polls, and when it sleeps.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <motet/base/call_site.hpp>
#include <motet/base/clock.hpp>
#include <motet/detail/platform/process.hpp>
#include <optional>
#include <vector>

#include "platform/simulated_threads.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

class baton;
class simulation;
class world_backend;

/// A thread.
class runner final : public detail::simulated_thread {
 public:
  runner(simulation& inside, call_site maker) noexcept : inside_(inside), maker_(maker) {}
  void begin() noexcept override;
  void adopt(detail::thread_state& home) override;
  void end() noexcept override;

 private:
  friend baton;
  void await_turn() noexcept;

  simulation& inside_;
  const call_site maker_;                 // the spawn site of the fiber that made the thread
  detail::thread_state* home_ = nullptr;  // once it has slept
  world_backend* kernel_ = nullptr;
  std::optional<clock::time_point> sleeps_until_;
  std::int64_t priority_ = 0;  // for order::pct
  std::atomic<int> has_turn_{0};
};

class baton final : public detail::simulated_threads {
 public:
  /// The calling thread has it.
  explicit baton(simulation& inside);

  void prepare(options& settings) override;
  std::shared_ptr<detail::simulated_thread> add() override;
  std::size_t processors() const noexcept override { return 4; }

  // The rest is for the thread that has the baton.
  void set_kernel(world_backend* kernel) noexcept { holder_->kernel_ = kernel; }
  void adopt(detail::thread_state& home);
  bool is_first() const noexcept { return holder_ == threads_.front().get(); }
  /// Whether there are other threads; a forked child has none.
  bool has_others() const noexcept {
    return threads_.size() > 1 && made_in_ == detail::this_process();
  }
  /// Returns: the maker of a thread besides the first one; nothing if there is none.
  std::optional<call_site> maker_of_other() const noexcept;

  /// Decides which of the threads that can run does so from here on; it may be this one. They can
  /// unless they sleep. The first choice is that this one goes on, or, if it `yields`, the next.
  /// Returns: whether there was one.
  bool pass_on(bool yields) noexcept;
  /// Lets as much time pass as in a poll, and what happens in it: this thread does not poll.
  void pass_moment();
  /// Of this thread, for order::pct.
  void lower_priority() noexcept { holder_->priority_ = --lowest_; }
  /// From here on until end_sleep() this thread can run only if something wakes it.
  void begin_sleep(clock::time_point until) noexcept;
  void end_sleep() noexcept { holder_->sleeps_until_.reset(); }
  bool can_run() const noexcept { return can_run(*holder_); }
  /// Returns: when the first thread ends its sleep by itself.
  clock::time_point end_of_sleep() const noexcept;
  const std::vector<world_backend*>& kernels();

 private:
  friend runner;
  bool can_run(const runner& one) const noexcept;
  void list_ready(bool yields);
  std::shared_ptr<runner> choose(bool yields);
  void hand_over(std::shared_ptr<runner> next) noexcept;
  void remove(const runner& ended) noexcept;

  simulation& inside_;
  const std::uint32_t made_in_ = detail::this_process();
  std::vector<std::shared_ptr<runner>> threads_;  // in the order of their creation
  runner* holder_ = nullptr;
  std::int64_t lowest_ = 0;                     // priority
  std::vector<std::shared_ptr<runner>> ready_;  // room for choose()
  std::vector<world_backend*> kernels_;
};

}}}  // namespace motet::MOTET_ABI::testing
