// SPDX-License-Identifier: MIT
// The former path of motet/io/reader.hpp.
#pragma once

#include <motet/io/reader.hpp>
