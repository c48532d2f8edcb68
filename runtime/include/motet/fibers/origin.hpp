// SPDX-License-Identifier: MIT
// The fiber in which an exception was thrown, for an exception that has reached another fiber.
#pragma once

#include <cstdint>
#include <exception>
#include <motet/base/call_site.hpp>
#include <optional>
#include <string>

namespace motet { inline namespace MOTET_ABI {

/// The fiber whose body an exception has left, as the fiber was at that time.
struct exception_origin {
  std::uint64_t fiber = 0;   // fiber_ref::id()
  std::string name;          // may be empty
  call_site site;            // where the fiber was spun
  std::uint64_t parent = 0;  // 0: the fiber had become the main fiber of a forked child
  std::string parent_name;
};

/// Returns: the first fiber whose body `error` has left, however many others it has left since;
///          empty if it has left none, or if memory was short. The same object gives the same
///          answer, even after the end of the fiber and of its thread.
/// Not a switchpoint. Any thread.
/// Throws: std::bad_alloc.
std::optional<exception_origin> origin(const std::exception_ptr& error);

}}  // namespace motet::MOTET_ABI
