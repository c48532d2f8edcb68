// SPDX-License-Identifier: MIT
// The former path of motet/fibers/supervise.hpp.
#pragma once

#include <motet/fibers/supervise.hpp>
