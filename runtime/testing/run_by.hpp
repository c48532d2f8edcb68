// SPDX-License-Identifier: MIT
// A simulation whose decisions come from anywhere.
#pragma once

#include <functional>
#include <motet/testing.hpp>

#include "testing/coverage.hpp"
#include "testing/decisions.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

/// As run(), but `source` decides; `how` gives neither seed nor log. `seen` may be null.
outcome run_by(const plan& how, decisions source, const std::function<void(world&)>& function,
               coverage* seen = nullptr);

}}}  // namespace motet::MOTET_ABI::testing
