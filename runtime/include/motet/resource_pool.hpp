// SPDX-License-Identifier: MIT
// The former path of motet/sync/resource_pool.hpp.
#pragma once

#include <motet/sync/resource_pool.hpp>
