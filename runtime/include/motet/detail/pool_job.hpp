// SPDX-License-Identifier: MIT
// A job of a thread_pool, and what is counted about the worker that has it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <motet/detail/job.hpp>
#include <motet/future.hpp>
#include <optional>
#include <type_traits>
#include <utility>

namespace motet::inline MOTET_ABI::detail {

struct pool_state;

/// A worker's load is what it has been given less what it has finished: so it alone writes its
/// part, and a pool in which all that was finished is all that had been given has nothing to do.
struct worker_load {
  alignas(64) std::atomic<std::uint64_t> given{0};
  alignas(64) std::atomic<std::uint64_t> finished{0};
  std::atomic<std::uint64_t> failed{0};
};

/// Its fiber's body calls run() and, once that fiber's children are over, end().
class pool_job : public job {
 public:
  explicit pool_job(call_site from) noexcept : job(from, false) {}

  const body_kind& kind() const noexcept override { return body_kind_of<runner, void>::kind; }
  void body(void* place) noexcept override { ::new (place) runner{this}; }
  void refuse(std::exception_ptr why) noexcept override;

  /// It was not given to anybody.
  void take_back() noexcept;
  void count_finished() noexcept;

  // Set when it is given to a worker.
  pool_state* pool = nullptr;
  worker_load* worker = nullptr;

 protected:
  ~pool_job() = default;

 private:
  struct runner {
    pool_job* its;
    explicit runner(pool_job* one) noexcept : its(one) {}
    runner(const runner&) = delete;
    runner& operator=(const runner&) = delete;
    ~runner() { its->end(); }
    void operator()() { its->run_unless_discarded(); }
  };

  void run_unless_discarded() noexcept;
  void end() noexcept;

  /// Calls the function.
  virtual void run() = 0;
  /// What has been thrown, by the function or instead of calling it, or by a child of its fiber.
  virtual void fail(std::exception_ptr error) noexcept = 0;
  /// Destroys the function.
  virtual void drop() noexcept = 0;
  /// The last word: whoever waits sees it from here on, and this is gone.
  virtual void publish() noexcept = 0;

  void note(std::exception_ptr error) noexcept;
  void finish() noexcept;

  bool has_run_ = false;
  bool failed_ = false;
};

void report_failed_job(const pool_state& pool, const std::exception_ptr& error) noexcept;

/// One whose result goes into a future, which lies in the same memory.
template <typename F, typename Result>
class submitted final : public pool_job, public future_state<Result> {
 public:
  template <typename G>
  submitted(G&& function, call_site from)
      : pool_job(from), function_(std::in_place, std::forward<G>(function)) {}

  std::shared_ptr<submitted> itself;  // until it is over

 private:
  void run() override {
    if constexpr (std::is_void_v<Result>) {
      (*function_)();
      this->value.emplace();
    } else {
      this->value.emplace((*function_)());
    }
  }
  void fail(std::exception_ptr thrown) noexcept override {
    this->error = told_to_others(std::move(thrown));
  }
  void drop() noexcept override { function_.reset(); }
  void publish() noexcept override {
    const std::shared_ptr<submitted> kept = std::move(itself);
    future_state<Result>::publish();
  }

  std::optional<F> function_;
};

/// One that nobody waits for: a failure goes to on_unhandled.
template <typename F>
class pool_post final : public pool_job {
 public:
  template <typename G>
  pool_post(G&& function, call_site from)
      : pool_job(from), function_(std::in_place, std::forward<G>(function)) {}

 private:
  ~pool_post() = default;
  void run() override { (*function_)(); }
  void fail(std::exception_ptr thrown) noexcept override { report_failed_job(*pool, thrown); }
  void drop() noexcept override { function_.reset(); }
  void publish() noexcept override { delete this; }

  std::optional<F> function_;
};

}  // namespace motet::inline MOTET_ABI::detail
