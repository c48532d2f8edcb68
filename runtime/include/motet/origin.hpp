// SPDX-License-Identifier: MIT
// The former path of motet/fibers/origin.hpp.
#pragma once

#include <motet/fibers/origin.hpp>
