// SPDX-License-Identifier: MIT
// Whether a thread takes functions that other threads leave for it, and where they lie.
#pragma once

namespace motet { inline namespace MOTET_ABI { namespace detail {

class job_inbox;

struct job_intake {
  bool taken = false;          // other threads may leave jobs: this thread is never stuck
  job_inbox* inbox = nullptr;  // until no more are taken
};

}}}  // namespace motet::MOTET_ABI::detail
