// SPDX-License-Identifier: MIT
// The former path of motet/io/directory.hpp.
#pragma once

#include <motet/io/directory.hpp>
