// SPDX-License-Identifier: MIT
// The former path of motet/io/pipe.hpp.
#pragma once

#include <motet/io/pipe.hpp>
