// SPDX-License-Identifier: MIT
// The branches of a select() on a fiber's end, a descriptor and a time.
#pragma once

#include <poll.h>

#include <motet/detail/base/timespan.hpp>
#include <motet/detail/sync/select_branch.hpp>
#include <motet/fibers/fiber.hpp>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

namespace detail {

/// A branch, and the handler to call when the branch was taken.
template <typename Branch, typename F>
struct select_case {
  /// The branch counts only if `enabled`; it is enabled at first.
  /// Not a switchpoint.
  select_case& only_if(bool enabled) & {
    branch.enabled = enabled;
    return *this;
  }
  /// Not a switchpoint.
  select_case&& only_if(bool enabled) && {
    branch.enabled = enabled;
    return std::move(*this);
  }

  Branch branch;
  F handler;
};

struct nothing_to_do {
  void operator()() const noexcept {}
};

}  // namespace detail

/// A branch that is ready when `fiber` has ended, and then calls `handler()`. fiber_ref::await()
/// tells how the fiber has ended.
/// Not a switchpoint.
/// Throws: std::logic_error for an empty handle.
template <typename F = detail::nothing_to_do>
auto on_end(const fiber_ref& fiber, F handler = {}) {
  return detail::select_case<detail::end_case, F>{detail::end_case(fiber), std::move(handler)};
}

/// A branch that is ready when reading from the descriptor would not wait, and then calls
/// `handler()`.
/// Not a switchpoint.
template <typename F = detail::nothing_to_do>
auto on_readable(int fd, F handler = {}) {
  return detail::select_case<detail::ready_case, F>{detail::ready_case(fd, POLLIN),
                                                    std::move(handler)};
}

/// A branch that is ready when writing to the descriptor would not wait, and then calls
/// `handler()`.
/// Not a switchpoint.
template <typename F = detail::nothing_to_do>
auto on_writable(int fd, F handler = {}) {
  return detail::select_case<detail::ready_case, F>{detail::ready_case(fd, POLLOUT),
                                                    std::move(handler)};
}

/// A branch that is ready when `span` has passed without another branch being taken, and then calls
/// `handler()`. With a span of 0, select() does not wait. The time starts with this call, or, for a
/// branch in a range, with select().
/// Not a switchpoint.
template <typename F = detail::nothing_to_do>
auto on_timeout(detail::timespan span, F handler = {}) {
  return detail::select_case<detail::time_case, F>{detail::time_case(span.length),
                                                   std::move(handler)};
}

}}  // namespace motet::MOTET_ABI
