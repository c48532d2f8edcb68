// SPDX-License-Identifier: MIT
// The former path of motet/sync/shared_mutex.hpp.
#pragma once

#include <motet/sync/shared_mutex.hpp>
