// SPDX-License-Identifier: MIT
// The former path of motet/observe/trace.hpp.
#pragma once

#include <motet/observe/trace.hpp>
