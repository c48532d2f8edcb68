// SPDX-License-Identifier: MIT
// The former path of motet/runtime/run_until_signal.hpp.
#pragma once

#include <motet/runtime/run_until_signal.hpp>
