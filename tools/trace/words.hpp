// SPDX-License-Identifier: MIT
// How numbers are told to people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace motet_trace {

/// Returns: "2.9 ms", "81.0 us", "1.25 s".
std::string span(std::int64_t nanoseconds);
/// Returns: "1,234,567".
std::string number(std::uint64_t value);
/// Returns: "1 turn", "12 turns".
std::string counted(std::size_t count, const std::string& noun);

}  // namespace motet_trace
