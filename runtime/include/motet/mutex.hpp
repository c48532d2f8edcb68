// SPDX-License-Identifier: MIT
// The former path of motet/sync/mutex.hpp.
#pragma once

#include <motet/sync/mutex.hpp>
