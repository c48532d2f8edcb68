// SPDX-License-Identifier: MIT
// See threads/job_inbox.hpp. No wake is lost: under the lock either the owner's fiber finds the
// job, or the thread that leaves the job finds that the fiber waits.
#include "threads/job_inbox.hpp"

#include <motet/detail/words/jitter.hpp>
#include <mutex>
#include <utility>

#include "heart/mail/mailbox.hpp"
#include "heart/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// Chunks of memory that each of the two queues keeps, as they swap them.
constexpr std::size_t kept_chunks = 64;

}  // namespace

job_inbox::job_inbox() noexcept {
  arrived_.keep(kept_chunks);
  taken_.keep(kept_chunks);
  wake_up_.inbox = this;
  wake_up_.handle_post = [](post& item, thread_state& home) noexcept {
    wait_record* wait = static_cast<wake_up&>(item).inbox->waiting_;
    if (wait != nullptr) home.resume(*wait, wake_reason::handed);
  };
}

bool job_inbox::push(job_slot&& item) {
  std::unique_lock in(sharing_);
  while (arrived_.lacks_room()) {
    in.unlock();
    auto more = decltype(arrived_)::make_room();
    in.lock();
    arrived_.add(std::move(more));
  }
  if (closed_) return false;
  arrived_.push(std::move(item));
  const bool wakes = std::exchange(awaited_, false);
  in.unlock();
  jitter();
  if (wakes) home_->push(wake_up_);
  return true;
}

/// Takes all jobs that were left.
/// Returns: whether there is a job, or the inbox is closed; if not, push() will wake the owner.
bool job_inbox::fetch() noexcept {
  const std::lock_guard in(sharing_);
  if (arrived_.size() > 0) taken_.swap(arrived_);
  awaited_ = empty() && !closed_;
  return !awaited_;
}

bool job_inbox::await(thread_state& home) noexcept {
  while (empty() && !fetch()) {
    wait_record wait("jobs");
    waiting_ = &wait;
    const bool interrupted = home.park(wait) == wake_reason::interrupted;
    waiting_ = nullptr;
    if (interrupted) return false;
  }
  return !empty();
}

/// The jobs that are left are taken out before they are destroyed: to destroy them may take a
/// while, and no fiber may begin one meanwhile.
void job_inbox::close(thread_state& home) noexcept {
  item_queue<job_slot> later;  // destroyed in reverse
  item_queue<job_slot> sooner;
  sooner.swap(taken_);
  {
    const std::lock_guard in(sharing_);
    closed_ = true;
    later.swap(arrived_);
  }
  if (waiting_ != nullptr) home.resume(*waiting_, wake_reason::handed);
}

}}}  // namespace motet::MOTET_ABI::detail
