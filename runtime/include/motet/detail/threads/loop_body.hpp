// SPDX-License-Identifier: MIT
// The part of parallel_for() that does not depend on the range.
#pragma once

#include <cstddef>
#include <motet/base/call_site.hpp>

namespace motet { inline namespace MOTET_ABI {

class thread_pool;

namespace detail {

/// Calls the body of a loop for the elements [first, last). The body outlives the calls.
struct loop_body {
  void (*call)(void* body, std::size_t first, std::size_t last);
  void* body;

  template <typename Body>
  static loop_body of(Body& body) noexcept {
    return {[](void* target, std::size_t first, std::size_t last) {
              (*static_cast<Body*>(target))(first, last);
            },
            &body};
  }
};

/// Calls `body` for blocks that cover [0, count).
/// Throws: as parallel_for().
void call_in_blocks(thread_pool& pool, std::size_t count, loop_body body, call_site site);

/// Throws: std::logic_error if nothing can wait on this thread, because it is a foreign one or its
///         runtime has ended.
void check_may_wait_here(const char* function);

std::size_t workers_of(const thread_pool& pool) noexcept;

}  // namespace detail
}}  // namespace motet::MOTET_ABI
