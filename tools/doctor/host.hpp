// SPDX-License-Identifier: MIT
// What this host gives to a program with motet, and what would have to be set for more.
#pragma once

#include <string>
#include <vector>

namespace motet_doctor {

struct finding {
  std::string what;
  std::string is;
  std::string advice;  // empty: it is well
};

/// Returns: what was found, in the order in which it is to be told.
std::vector<finding> look_at_host();

/// Returns: why a backend does not work here; empty if it does.
std::string why_not(const std::string& backend);

}  // namespace motet_doctor
