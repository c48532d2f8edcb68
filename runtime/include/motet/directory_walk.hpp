// SPDX-License-Identifier: MIT
// The former path of motet/io/directory_walk.hpp.
#pragma once

#include <motet/io/directory_walk.hpp>
