// SPDX-License-Identifier: MIT
// The former path of motet/sync/once.hpp.
#pragma once

#include <motet/sync/once.hpp>
