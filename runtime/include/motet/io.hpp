// SPDX-License-Identifier: MIT
// The former path of motet/io/io.hpp.
#pragma once

#include <motet/io/io.hpp>
