// SPDX-License-Identifier: MIT
// What the simulations of an explore() have tried.
#pragma once

#include <cstddef>
#include <map>
#include <motet/base/clock.hpp>
#include <motet/testing.hpp>
#include <string>

#include "testing/decisions.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

class coverage {
 public:
  /// How often something was decided, and how often not as in a log of zeros.
  struct tally {
    std::size_t all = 0;
    std::size_t unusual = 0;
  };

  void add(const outcome& one);
  void add(const decision& one);
  /// A buggify() was asked.
  void add_site(const std::string& site, bool happened);
  /// Returns: a few lines.
  std::string text() const;

 private:
  std::size_t seeds_ = 0;
  std::size_t steps_ = 0;
  clock::duration span_{};
  std::map<choice, tally> decisions_;
  std::map<std::string, tally> sites_;
};

}}}  // namespace motet::MOTET_ABI::testing
