// SPDX-License-Identifier: MIT
// The former path of motet/runtime/options.hpp.
#pragma once

#include <motet/runtime/options.hpp>
