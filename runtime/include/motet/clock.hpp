// SPDX-License-Identifier: MIT
// The former path of motet/base/clock.hpp.
#pragma once

#include <motet/base/clock.hpp>
