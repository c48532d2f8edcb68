// SPDX-License-Identifier: MIT
// The former path of motet/fibers/retry.hpp.
#pragma once

#include <motet/fibers/retry.hpp>
