// SPDX-License-Identifier: MIT
// Makes the log of a failure shorter and simpler, while the simulation still fails.
#pragma once

#include <functional>
#include <motet/testing.hpp>

#include "testing/decisions.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

/// Returns: a log with which the simulation fails in the same way, and that ends with the last
///          decision that is not 0; that of `failed`, if none is simpler. Runs the simulation up to
///          3,000 times, for 10 s of real time.
decision_log shrunk(const plan& how, const std::function<void(world&)>& function,
                    const outcome& failed);

}}}  // namespace motet::MOTET_ABI::testing
