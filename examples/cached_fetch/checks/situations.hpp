// SPDX-License-Identifier: MIT
// What may be asked for in the chaos, and what may come of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "../house.hpp"

namespace cached_fetch {

/// The servers, one of each kind of behaviour.
struct town {
  own_server good{{.reply_after = std::chrono::milliseconds(10)}};
  own_server silent{{.reply_hangs = true}};
  own_server deaf{{.accept_hangs = true}};
  own_server rude{{.close_after = 1}};
  motet::net::endpoint empty_place = nowhere();
};

struct situation {
  std::string key;
  plan how;
  std::vector<outcome::kind> allowed;
  bool is_cancelled = false;

  bool allows(outcome::kind what) const {
    return std::find(allowed.begin(), allowed.end(), what) != allowed.end();
  }
};

/// Throws dice; the same seed gives the same situations.
class dice {
 public:
  explicit dice(std::uint64_t seed) : numbers_(seed) {}

  /// Returns: from 0 to `most`.
  int up_to(int most) { return std::uniform_int_distribution(0, most)(numbers_); }
  milliseconds ms_up_to(int most) { return milliseconds(up_to(most)); }
  bool one_in(int count) { return up_to(count - 1) == 0; }

 private:
  std::mt19937_64 numbers_;
};

/// Returns: one of the kinds of the checks C1 to C8; `number` makes its key unlike any other.
situation make_situation(dice& random, const town& servers, int number);

}  // namespace cached_fetch
