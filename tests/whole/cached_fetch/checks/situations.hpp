// SPDX-License-Identifier: MIT
// The requests of the chaos, and their possible outcomes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "../house.hpp"

namespace fetch_test {

/// The servers, one of each kind of behaviour.
struct town {
  own_server good_server{{.reply_after = std::chrono::milliseconds(10)}};
  own_server silent_server{{.reply_hangs = true}};
  own_server deaf_server{{.accept_hangs = true}};
  own_server rude_server{{.close_after = 1}};
  motet::net::endpoint empty_place = nowhere();
};

struct situation {
  std::string key;
  plan course;
  std::vector<outcome::kind> outcomes;  // that are right
  bool is_cancelled = false;

  bool allows(outcome::kind end) const {
    return std::find(outcomes.begin(), outcomes.end(), end) != outcomes.end();
  }
};

/// The same seed gives the same situations.
class dice {
 public:
  explicit dice(std::uint64_t seed) : numbers_(seed) {}

  /// Returns: a number in [0, bound].
  int up_to(int bound) { return std::uniform_int_distribution(0, bound)(numbers_); }
  milliseconds ms_up_to(int bound) { return milliseconds(up_to(bound)); }
  bool one_in(int count) { return up_to(count - 1) == 0; }

 private:
  std::mt19937_64 numbers_;
};

/// Returns: a situation like those of C1 to C8; `number` makes its key unique.
situation make_situation(dice& random, const town& servers, int number);

}  // namespace fetch_test
