// SPDX-License-Identifier: MIT
// The former path of motet/sync/rate_limiter.hpp.
#pragma once

#include <motet/sync/rate_limiter.hpp>
