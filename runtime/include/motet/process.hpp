// SPDX-License-Identifier: MIT
// The former path of motet/io/process.hpp.
#pragma once

#include <motet/io/process.hpp>
