// SPDX-License-Identifier: MIT
// The former path of motet/sync/time.hpp.
#pragma once

#include <motet/sync/time.hpp>
