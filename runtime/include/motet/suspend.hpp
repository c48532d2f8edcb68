// SPDX-License-Identifier: MIT
// The former path of motet/fibers/suspend.hpp.
#pragma once

#include <motet/fibers/suspend.hpp>
