// SPDX-License-Identifier: MIT
// The former path of motet/sync/watch.hpp.
#pragma once

#include <motet/sync/watch.hpp>
