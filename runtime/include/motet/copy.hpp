// SPDX-License-Identifier: MIT
// The former path of motet/io/copy.hpp.
#pragma once

#include <motet/io/copy.hpp>
