// SPDX-License-Identifier: MIT
// Jobs that any thread leaves for one, without a lock: the newest is linked to the one before it.
// One fiber of that thread takes them all at once, and is woken only if it waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <motet/detail/job.hpp>
#include <motet/detail/post.hpp>
#include <motet/detail/wait_record.hpp>

namespace motet::inline MOTET_ABI::detail {

class mailbox;

class job_inbox {
 public:
  job_inbox() noexcept;
  job_inbox(const job_inbox&) = delete;
  job_inbox& operator=(const job_inbox&) = delete;

  /// Before anybody else can reach it.
  void open(mailbox& home) noexcept { home_ = &home; }
  /// Returns: false if it is closed; `item` is the caller's still. Any thread.
  bool push(job& item) noexcept;

  // The rest is for the thread itself.
  /// Waits for jobs.
  /// Returns: the oldest, linked to those behind it; null if it is closed, or its fiber cancelled.
  job* take(thread_state& home) noexcept;
  /// Returns: what is left, as take().
  job* close() noexcept;

 private:
  /// What is in the place of the newest: 0: nothing; one of these; or a job's address.
  static constexpr std::uintptr_t awaited = 1;
  static constexpr std::uintptr_t closed = 2;

  static job* oldest_first(std::uintptr_t newest) noexcept;
  bool await(thread_state& home) noexcept;

  struct wake_up : post {
    job_inbox* inbox = nullptr;
  };

  std::atomic<std::uintptr_t> newest_{0};
  mailbox* home_ = nullptr;
  wait_record* waiting_ = nullptr;  // at home
  wake_up wake_up_;
};

}  // namespace motet::inline MOTET_ABI::detail
