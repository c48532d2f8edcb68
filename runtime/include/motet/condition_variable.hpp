// SPDX-License-Identifier: MIT
// The former path of motet/sync/condition_variable.hpp.
#pragma once

#include <motet/sync/condition_variable.hpp>
