// SPDX-License-Identifier: MIT
// What this host gives to a program with motet, and what would have to be set for more.
#pragma once

#include <string>
#include <vector>

namespace motet_doctor {

struct finding {
  std::string subject;
  std::string is;
  std::string advice;  // empty: it is well
};

/// Returns: the findings, in the order of the report.
std::vector<finding> look_at_host();

/// Returns: why a backend is not available here; empty if it is.
std::string why_not(const std::string& backend);

}  // namespace motet_doctor
