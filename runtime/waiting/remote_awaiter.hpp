// SPDX-License-Identifier: MIT
// Waiting for the end of a fiber of another thread, by posts that go to its thread and come back.
#pragma once

#include <atomic>
#include <cstdint>
#include <motet/detail/heart/handle.hpp>
#include <motet/detail/heart/wait_record.hpp>
#include <motet/detail/waiting/waiter.hpp>
#include <motet/detail/words/post.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Puts `waiting` into the list of the fiber it waits for; on that fiber's thread.
void enlist(awaiter& waiting, control_block& fiber) noexcept;

/// The fiber that waits may give up while the other thread is busy: so this is not in its frame.
/// Goes out to be enlisted, comes back when it is told, or is fetched by a second post; whoever has
/// it last deletes it.
class distant_awaiter : public awaiter {
 public:
  /// `among`: the place where the news ends a wait for several things; otherwise it ends `wait`,
  /// and the failure of the awaited fiber is claimed.
  /// Returns: null if the fiber is dead.
  /// Throws: std::bad_alloc.
  static distant_awaiter* send(control_block& target, control_block& waiting,
                               waiter* among = nullptr);

  /// Calls the wait off; this then ends itself.
  /// Returns: false if the awaited fiber has ended first: the news is under way.
  bool give_up() noexcept;
  /// Nobody waits for the news that is under way.
  void abandon() noexcept { among_ = nullptr, abandoned_ = true; }
  /// Whether the news has come, perhaps just after something else had ended the wait: then nothing
  /// more comes, and this is the caller's to dispose of.
  bool over() const noexcept { return over_; }
  void dispose() noexcept { delete this; }

  wait_record wait{"await of distant"};

 private:
  struct letter : post {
    distant_awaiter* sender = nullptr;
  };
  enum class progress : std::uint8_t { waiting, told, given_up };

  distant_awaiter(handle awaited, handle from, waiter* among) noexcept;
  ~distant_awaiter() = default;

  void come_home(thread_state& home) noexcept;

  handle target_;
  handle from_;           // keeps its thread's mailbox
  control_block* block_;  // of target_
  waiter* among_;
  const bool claims_;
  bool abandoned_ = false;
  bool over_ = false;  // at home
  std::atomic<progress> reached_{progress::waiting};
  letter enlisting_, fetching_, news_;
};

}}}  // namespace motet::MOTET_ABI::detail
