// SPDX-License-Identifier: MIT
// See platform/simulated_threads.hpp.
#include "platform/simulated_threads.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

thread_local simulated_threads* threads_of_simulation = nullptr;

}  // namespace

simulated_threads* simulated_threads::present() noexcept {
  return threads_of_simulation;
}

void simulated_threads::set_present(simulated_threads* threads) noexcept {
  threads_of_simulation = threads;
}

}}}  // namespace motet::MOTET_ABI::detail
