// SPDX-License-Identifier: MIT
// The former path of motet/runtime/backend.hpp.
#pragma once

#include <motet/runtime/backend.hpp>
