// SPDX-License-Identifier: MIT
// The waits of this program. What a fiber does between two of them is measured.
#pragma once

#include <chrono>
#include <motet/motet.hpp>
#include <optional>
#include <thread>

#include "this_thread.hpp"

namespace cached_fetch {

/// A portal: while it lives the fiber is there.
class visit {
 public:
  explicit visit(motet::executor where) {
    const pause on_the_way;
    there_.emplace(where);
  }
  visit(const visit&) = delete;
  visit& operator=(const visit&) = delete;
  ~visit() {
    const pause on_the_way_back;
    there_.reset();
  }

 private:
  std::optional<motet::portal> there_;
};

enum class nap { of_the_fiber, of_the_thread };

/// Takes its time. A nap of the thread is what no fiber should do.
inline void take(std::chrono::milliseconds length, nap whose = nap::of_the_fiber) {
  if (length.count() <= 0) return;
  if (whose == nap::of_the_thread) {
    std::this_thread::sleep_for(length);
    return;
  }
  const pause meanwhile;
  motet::sleep_for(length);
}

}  // namespace cached_fetch
