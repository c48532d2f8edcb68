// SPDX-License-Identifier: MIT
// Plain threads that make the calls that would block a thread of fibers. A thread begins when there
// is a call and no thread is idle, up to a limit, beyond which calls stand in line. A thread that
// has been idle for some time ends.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <motet/base/call_site.hpp>
#include <motet/base/clock.hpp>
#include <motet/detail/base/blocking_call.hpp>
#include <mutex>
#include <optional>

namespace motet { inline namespace MOTET_ABI { namespace detail { namespace blocking_pool {

/// The limit: options.offload_limit. A blocked thread costs some 20 KB and a place in the kernel's
/// tables, and more threads do not make a disk or a database faster.
inline constinit std::atomic<std::size_t> most{256};
/// The same for the threads that make motet's own calls, and that resolve names. Only tests change
/// these, and the next variable.
inline constinit std::atomic<std::size_t> most_for_own{64};
inline constinit std::atomic<std::size_t> most_for_names{64};
/// Threads whose calls wait for offloaded calls themselves, or were abandoned, do not count towards
/// the limit; but there are never more threads than this many times the limit.
inline constexpr std::size_t most_times_in_all = 4;
/// Long enough that a program which offloads a call now and then does not begin a thread each time.
inline constinit std::atomic<std::chrono::milliseconds> idle_time{std::chrono::seconds(5)};

/// Assigns the call to an idle thread, a new one, or the next one that becomes free. Calls by
/// threads of the set have priority. Any thread may submit.
/// Returns: 0; or, without effect, an errno value if no thread could be created and no other could
///          ever make the call; EDEADLK if the submitter is a thread of the set, no more threads
///          are allowed, and all of them wait for other calls or were abandoned.
int submit(blocking_call& work) noexcept;
/// Takes a call back that no thread has begun. Any thread.
/// Returns: whether the call was taken back.
bool withdraw(blocking_call& work) noexcept;
/// The caller is about to abandon `work`, whose thread no longer counts towards the limit.
void mark_abandoned(blocking_call& work) noexcept;
/// The caller no longer waits for its call, which may have ended and been destroyed.
void end_wait_of_caller() noexcept;

/// Called in a call: its thread never ends, because something depends on the thread's life.
void keep_this_thread() noexcept;

struct set_load {
  std::size_t threads = 0, idle = 0;
  std::size_t in_line = 0;  // calls that no thread has begun
};
/// Returns: the load of all worker pools. Walks the queues under the lock.
set_load load() noexcept;

/// Why calls in line have no thread.
struct congestion {
  set_load load;
  std::size_t limit = 0;
  std::size_t abandoned_count = 0;  // threads whose callers have abandoned their calls
  call_site site;                   // the call site of most running calls,
  std::size_t from_site = 0;        // the number of these calls,
  clock::duration longest{};        // and how long the oldest has run
};
/// Returns: what holds up the pool of `call`, if that call is still in line, no call of the pool
///          has begun for `at_least`, and this was not returned in the last ten seconds. The caller
///          reports it.
std::optional<congestion> congestion_of(blocking_call& call, clock::duration at_least) noexcept;

/// While a standstill lives, no thread of the set gets a call, becomes idle, or ends.
class standstill {
 public:
  standstill() noexcept;

  /// Returns: how many threads are idle, and so cannot wake a fiber.
  std::size_t idle() const noexcept;

 private:
  std::unique_lock<std::mutex> lock_;
};

/// The name of a thread that has left the set and is exiting.
inline constexpr char name_of_ended[] = "motet ended";

// Called around a fork:
void lock() noexcept;
void unlock() noexcept;
/// Called in the child, instead of unlock(): the set and its lines are empty there.
void abandon() noexcept;

}}}}  // namespace motet::MOTET_ABI::detail::blocking_pool
