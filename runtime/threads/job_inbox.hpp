// SPDX-License-Identifier: MIT
// The jobs that other threads leave for one thread, its owner. The owner takes all of them at once,
// and is woken only if it waits.
#pragma once

#include <motet/detail/heart/job_slot.hpp>
#include <motet/detail/heart/wait_record.hpp>
#include <motet/detail/waiting/sharing.hpp>
#include <motet/detail/words/item_queue.hpp>
#include <motet/detail/words/post.hpp>
#include <optional>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class mailbox;

class job_inbox {
 public:
  job_inbox() noexcept;
  job_inbox(const job_inbox&) = delete;
  job_inbox& operator=(const job_inbox&) = delete;

  /// Called before another thread can reach the inbox.
  void open(mailbox& home) noexcept { home_ = &home; }
  /// Returns: false if the inbox is closed; the caller keeps `item`. Any thread.
  /// Throws: std::bad_alloc; the caller keeps `item`.
  bool push(job_slot&& item);

  // The rest is for the owner alone.
  /// Waits until there is a job.
  /// Returns: false if the inbox is closed, or the fiber was interrupted.
  bool await(thread_state& home) noexcept;
  /// The oldest job that await() has found.
  job_slot& front() noexcept { return taken_.front(); }
  bool empty() const noexcept { return taken_.size() == 0; }
  void pop(std::optional<job_slot>& into) noexcept { taken_.pop(into); }
  /// Takes no more jobs, and destroys those that are left without doing them.
  void close(thread_state& home) noexcept;

  /// A caller, of job_starter.cpp, is about to call the next function.
  bool somebody_calls = false;

 private:
  struct wake_up : post {
    job_inbox* inbox = nullptr;
  };

  bool fetch() noexcept;

  any_thread sharing_;  // guards:
  item_queue<job_slot> arrived_;
  bool awaited_ = false;
  bool closed_ = false;

  // Of the owner:
  item_queue<job_slot> taken_;
  mailbox* home_ = nullptr;
  wait_record* waiting_ = nullptr;
  wake_up wake_up_;
};

}}}  // namespace motet::MOTET_ABI::detail
