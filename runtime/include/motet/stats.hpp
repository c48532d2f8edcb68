// SPDX-License-Identifier: MIT
// The former path of motet/observe/stats.hpp.
#pragma once

#include <motet/observe/stats.hpp>
