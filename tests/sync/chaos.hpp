// SPDX-License-Identifier: MIT
// Fibers that are interrupted at random, and go on.
#pragma once

#include <chrono>
#include <motet/motet.hpp>
#include <random>
#include <stdexcept>
#include <vector>

#include "quiet.hpp"
#include "support.hpp"

namespace testing {

inline int many(std::size_t full) {
  return static_cast<int>(scaled(full, full / (under_tsan ? 100 : 10)));
}

struct interruption : std::runtime_error {
  interruption() : std::runtime_error("chaos") {}
};

inline motet::options disturbed() {
  return poked<interruption>();
}

/// Interrupts fibers that it is told of, at random, until it is told to end.
class chaos {
 public:
  explicit chaos(unsigned seed) : dice_(seed) {}

  /// Somebody who goes on after each interruption.
  template <typename F>
  void spin_stubborn(motet::group& members, F again) {
    members.spin([this, again] {
      victims_.push_back(motet::current());
      for (bool again_wanted = true; again_wanted;) {
        try {
          again_wanted = again();
        } catch (const interruption&) {
          ++interruptions;
        }
      }
      std::erase(victims_, motet::current());
    });
  }

  void run_until(const bool& finished) {
    while (!finished) {
      if (!victims_.empty()) victims_[dice_() % victims_.size()].raise(interruption());
      for (unsigned n = dice_() % 5; n > 0; --n) motet::snooze();
      if (dice_() % 16 == 0) motet::sleep_for(std::chrono::microseconds(10));
    }
  }

  int interruptions = 0;

 private:
  std::mt19937 dice_;
  std::vector<motet::fiber_ref> victims_;
};

}  // namespace testing
