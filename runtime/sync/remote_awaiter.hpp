// SPDX-License-Identifier: MIT
// Waiting for the end of a fiber of another thread, by posts that go to that thread and come back.
#pragma once

#include <cstdint>
#include <motet/detail/base/atomic.hpp>
#include <motet/detail/base/post.hpp>
#include <motet/detail/core/handle.hpp>
#include <motet/detail/core/wait_record.hpp>
#include <motet/detail/sync/waiter.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Puts `record` into the list of awaiters of `fiber`, or tells it at once if `fiber` is dead.
/// Called on the thread of `fiber`.
void enlist(awaiter& record, control_block& fiber) noexcept;

/// An awaiter of a fiber of another thread. The waiting fiber may give up while the other thread is
/// busy, so the awaiter is on the heap and not in its frame. It is posted to the other thread to be
/// enlisted, and posted back when it is told; if the waiting fiber gives up, a second post unlinks
/// it. The thread that has it last deletes it.
class remote_awaiter : public awaiter {
 public:
  /// `node`: the node, of a select(), by which the news ends the wait. Without it, the news ends
  /// `wait`, and the failure of the awaited fiber is claimed.
  /// Returns: null if the thread of `target` takes no more posts: it is dead, or will never end.
  /// Throws: std::bad_alloc.
  static remote_awaiter* send(control_block& target, control_block& record,
                              wait_node* node = nullptr);

  /// Cancels the wait; the awaiter will then be deleted.
  /// Returns: false if the awaited fiber has ended first, and the notification has been posted.
  bool give_up() noexcept;
  /// The waiting fiber does not wait for the news that is under way, which deletes the awaiter.
  void abandon() noexcept { node_ = nullptr, abandoned_ = true; }
  /// Whether the notification has arrived, perhaps just after something else had ended the wait.
  /// Then no post is pending, and the caller must dispose() of the awaiter.
  bool over() const noexcept { return complete_; }
  void dispose() noexcept { delete this; }

  wait_record wait{"await of distant"};

 private:
  struct letter : post {
    remote_awaiter* sender = nullptr;
  };
  enum class progress : std::uint8_t { waiting, notified, given_up };

  remote_awaiter(handle target, handle waiter_handle, wait_node* node) noexcept;
  ~remote_awaiter() = default;

  void come_home(thread_state& home) noexcept;

  handle target_;
  handle waiter_;         // the waiting fiber; keeps its mailbox alive
  control_block* block_;  // of target_
  wait_node* node_;
  const bool claims_;
  bool abandoned_ = false;
  bool complete_ = false;  // the notification has arrived; only used on the waiting fiber's thread
  atomic<progress> stage_{progress::waiting};
  letter enlisting_, fetching_, news_;
};

}}}  // namespace motet::MOTET_ABI::detail
