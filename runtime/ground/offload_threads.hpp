// SPDX-License-Identifier: MIT
// Plain threads that do what would block a thread of fibers. One begins when there is a job and
// none is idle, up to a limit, beyond which jobs stand in line; one that has been idle for some
// time ends.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <motet/detail/words/blocking_call.hpp>
#include <mutex>

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace offload_threads {

/// A blocked thread costs some 20 KB and a place in the kernel's tables; more of them do not make a
/// disk or a database faster. Only tests change it, and the next ones.
inline constinit std::atomic<std::size_t> most{256};
/// The same for the threads that resolve names.
inline constinit std::atomic<std::size_t> most_for_names{64};
/// A thread that waits for offloaded work itself, or does what nobody waits for any more, does not
/// count; but there are at most so many times as many.
inline constexpr std::size_t most_times_in_all = 4;
/// Long enough for whoever has something to do now and then not to begin a thread each time.
inline constinit std::atomic<std::chrono::milliseconds> idle_time{std::chrono::seconds(5)};

/// Has it done by an idle thread or a new one, or when one is free. Any thread; what one of the
/// set submits comes before what others do.
/// Returns: 0; or, without effect, an errno value: if none could be made and there is none that
///          could come to it, or EDEADLK if this is one of the set, there are as many as may be,
///          and all wait for others or were left.
int submit(blocking_call& work) noexcept;
/// Takes back what no thread has begun to do. Any thread.
/// Returns: whether it was so.
bool withdraw(blocking_call& work) noexcept;
/// The caller is about to leave what it has submitted: its thread does not count any more.
void will_leave(blocking_call& work) noexcept;
/// The caller has; the call may be over, and gone.
void has_left() noexcept;

/// While one stands, no thread gets a job, becomes idle, or ends.
class standstill {
 public:
  standstill() noexcept;

  /// Returns: how many threads are idle, and so cannot wake anybody.
  std::size_t idle() const noexcept;

 private:
  std::unique_lock<std::mutex> held_;
};

/// What a thread is called once it does nothing any more but end.
inline constexpr char name_of_ended[] = "motet ended";

// Round a fork.
void lock() noexcept;
void unlock() noexcept;
/// In the child, instead of unlock(): its set is empty, and its line too.
void abandon() noexcept;

}}}}  // namespace motet::MOTET_ABI::detail::offload_threads
