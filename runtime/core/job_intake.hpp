// SPDX-License-Identifier: MIT
// Whether a thread takes functions that other threads submit to it, and where they lie.
#pragma once

#include <array>
#include <memory>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace detail {

class job_inbox;

struct job_intake {
  /// Whether other threads may submit jobs: then this thread is never stuck.
  bool may_come() const noexcept { return in_use && inbox.use_count() > own_references; }

  /// References that the thread itself holds: `inbox`, and the job starter's.
  static constexpr long own_references = 2;

  /// In a forked child: what lies in the inbox belongs to the parent process.
  void forget() noexcept {
    union never_destroyed {
      ~never_destroyed() {}
      std::array<std::shared_ptr<job_inbox>, 2> inboxes;
    } garbage{{std::move(inbox), std::move(stale_inbox)}};
    in_use = stopped = false;
  }

  std::shared_ptr<job_inbox> inbox;  // shared with all threads that submit jobs
  /// The closed inbox, kept until the mailbox is closed, because its wake-up may be posted there.
  std::shared_ptr<job_inbox> stale_inbox;
  bool in_use = false;   // the inbox is in use
  bool stopped = false;  // accepts no more jobs
};

}}}  // namespace motet::MOTET_ABI::detail
