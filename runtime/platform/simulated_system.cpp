// SPDX-License-Identifier: MIT
// See platform/simulated_system.hpp.
#include "platform/simulated_system.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

thread_local simulated_system* system_of_thread = nullptr;

}  // namespace

simulated_system* simulated_system::present() noexcept {
  return system_of_thread;
}

void simulated_system::set_present(simulated_system* system) noexcept {
  system_of_thread = system;
}

}}}  // namespace motet::MOTET_ABI::detail
