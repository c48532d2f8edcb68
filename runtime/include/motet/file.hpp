// SPDX-License-Identifier: MIT
// The former path of motet/io/file.hpp.
#pragma once

#include <motet/io/file.hpp>
