// SPDX-License-Identifier: MIT
// The former path of motet/io/fd.hpp.
#pragma once

#include <motet/io/fd.hpp>
