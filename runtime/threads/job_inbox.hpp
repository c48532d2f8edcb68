// SPDX-License-Identifier: MIT
// What any thread leaves for one to do. That takes all there is at once, and is woken only if it
// waits.
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

  /// Before anybody else can reach it.
  void open(mailbox& home) noexcept { home_ = &home; }
  /// Returns: false if it is closed; `item` is the caller's still. Any thread.
  /// Throws: std::bad_alloc; `item` is the caller's still.
  bool push(job_slot&& item);

  // The rest is for the thread itself.
  /// Waits until there is something.
  /// Returns: false if it is closed, or the fiber was interrupted.
  bool await(thread_state& home) noexcept;
  /// The oldest, of what await() has found.
  job_slot& front() noexcept { return taken_.front(); }
  bool empty() const noexcept { return taken_.size() == 0; }
  void pop(std::optional<job_slot>& into) noexcept { taken_.pop(into); }
  /// Takes nothing more; what is left has been left undone.
  void close(thread_state& home) noexcept;

  /// A fiber that calls functions is about to call the next one.
  bool somebody_calls = false;

 private:
  struct wake_up : post {
    job_inbox* inbox = nullptr;
  };

  bool fetch() noexcept;

  any_thread sharing_;  // guards:
  item_queue<job_slot> left_;
  bool awaited_ = false;
  bool closed_ = false;

  // At home.
  item_queue<job_slot> taken_;
  mailbox* home_ = nullptr;
  wait_record* waiting_ = nullptr;
  wake_up wake_up_;
};

}}}  // namespace motet::MOTET_ABI::detail
