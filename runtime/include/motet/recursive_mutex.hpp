// SPDX-License-Identifier: MIT
// The former path of motet/sync/recursive_mutex.hpp.
#pragma once

#include <motet/sync/recursive_mutex.hpp>
