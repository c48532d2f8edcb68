// SPDX-License-Identifier: MIT
// The former path of motet/sync/every.hpp.
#pragma once

#include <motet/sync/every.hpp>
