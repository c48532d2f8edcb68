// SPDX-License-Identifier: MIT
// The former path of motet/fibers/local.hpp.
#pragma once

#include <motet/fibers/local.hpp>
