// SPDX-License-Identifier: MIT
// The former path of motet/sync/broadcast.hpp.
#pragma once

#include <motet/sync/broadcast.hpp>
