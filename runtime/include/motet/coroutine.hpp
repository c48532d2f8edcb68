// SPDX-License-Identifier: MIT
// The former path of motet/fibers/coroutine.hpp.
#pragma once

#include <motet/fibers/coroutine.hpp>
