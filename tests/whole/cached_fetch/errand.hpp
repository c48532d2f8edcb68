// SPDX-License-Identifier: MIT
// Which request the running fiber works for. The fetcher of the example passes only keys on; the
// caches, the network and the user interface of a check find the rest here.
#pragma once

#include <cstdint>
#include <motet/motet.hpp>

#include "events.hpp"
#include "plan.hpp"

namespace fetch_test {

struct errand {
  const plan& course;
  event_log& log;
  std::uint64_t fiber;  // of the request
};

/// Inherited by the fibers that search and fill the caches; null in a fiber of no request.
inline const motet::fiber_local<const errand*> current_errand{motet::inherited};

}  // namespace fetch_test
