// SPDX-License-Identifier: MIT
// A range that is read to its end by a fiber that is interrupted again and again.
#pragma once

#include <motet/motet.hpp>

#include "fixtures.hpp"

namespace testing {

/// Calls `next` until it returns false, in a fiber that is interrupted up to 100 times.
/// Returns: how often an interruption has ended a call.
template <typename Next>
int read_while_interrupted(Next next) {
  bool done = false;
  int interruptions = 0;
  auto reader = motet::spin([&] {
    while (!done) {
      try {
        while (next()) continue;
        done = true;
        motet::snooze();  // throws what came too late for the last call
      } catch (const oops&) {
        ++interruptions;
      }
    }
  });
  until_waiting(reader);
  while (!done) {
    if (interruptions < 100) reader.raise(oops());
    motet::snooze();
  }
  reader.await();
  return interruptions;
}

}  // namespace testing
