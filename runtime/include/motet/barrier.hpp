// SPDX-License-Identifier: MIT
// The former path of motet/sync/barrier.hpp.
#pragma once

#include <motet/sync/barrier.hpp>
