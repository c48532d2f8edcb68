// SPDX-License-Identifier: MIT
// The former path of motet/runtime/run.hpp.
#pragma once

#include <motet/runtime/run.hpp>
