// SPDX-License-Identifier: MIT
// The former path of motet/sync/latch.hpp.
#pragma once

#include <motet/sync/latch.hpp>
