// SPDX-License-Identifier: MIT
// Scheduling algorithms of Boost.Fiber: there is one order in motet, that of arrival.
#pragma once

#include <motet/detail/base/abi.hpp>
#include <type_traits>

namespace motet { inline namespace MOTET_ABI { namespace compat { namespace boost_fiber {

namespace algo {

class round_robin;
class shared_work;
class work_stealing;

}  // namespace algo

/// Does nothing: round_robin is what motet does.
/// Not a switchpoint.
template <typename Algorithm, typename... Arguments>
void use_scheduling_algorithm(const Arguments&...) noexcept {
  static_assert(std::is_same_v<Algorithm, algo::round_robin>,
                "motet has no scheduling algorithms, and a fiber stays on its thread: "
                "motet::thread_pool shares work out to threads");
}

}}}}  // namespace motet::MOTET_ABI::compat::boost_fiber
