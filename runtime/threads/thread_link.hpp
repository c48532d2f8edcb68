// SPDX-License-Identifier: MIT
// The state that a thread object, its thread, and the fibers that give the thread work share.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <memory>
#include <motet/detail/base/atomic.hpp>
#include <motet/detail/platform/process.hpp>
#include <motet/detail/sync/sharing.hpp>
#include <motet/threads/thread.hpp>
#include <optional>

#include "core/mail/remote_wait.hpp"
#include "platform/simulated_threads.hpp"
#include "threads/job_inbox.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct thread_link {
  thread_link(const options& thread_options, job_slot&& function)
      : settings(thread_options), body(std::move(function)) {}

  const options settings;
  std::optional<job_slot> body;
  job_inbox jobs;
  handle main;                                  // the main fiber, once the thread has begun
  std::shared_ptr<simulated_thread> simulated;  // null: not in a simulation
  pthread_t number{};
  /// A forked child has no such thread.
  const std::uint32_t made_in = this_process();
  atomic<bool> failure_claimed{false};
  bool alone = false;  // the thread object was destroyed on its own thread

  shared_policy sharing;  // guards:
  bool ended = false;
  remote_wait* awaiting_end = nullptr;
};

inline bool in_this_process(const thread_link& link) noexcept {
  return link.made_in == this_process();
}

}}}  // namespace motet::MOTET_ABI::detail
