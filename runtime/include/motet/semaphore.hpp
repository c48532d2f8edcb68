// SPDX-License-Identifier: MIT
// The former path of motet/sync/semaphore.hpp.
#pragma once

#include <motet/sync/semaphore.hpp>
