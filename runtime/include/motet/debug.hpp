// SPDX-License-Identifier: MIT
// The former path of motet/observe/debug.hpp.
#pragma once

#include <motet/observe/debug.hpp>
