// SPDX-License-Identifier: MIT
// A socket that takes nothing more.
#pragma once

#include <unistd.h>

#include "sockets.hpp"

namespace testing {

/// Until `quiet` milliseconds have passed without room: what TCP acknowledges late, makes some.
inline void fill_for_good(int fd, int quiet = 80) {
  for (int milliseconds = 0; milliseconds < quiet; ++milliseconds) {
    if (fill(fd) > 0) milliseconds = 0;
    ::usleep(1'000);
  }
}

}  // namespace testing
