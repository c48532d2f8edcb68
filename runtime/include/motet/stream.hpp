// SPDX-License-Identifier: MIT
// The former path of motet/io/stream.hpp.
#pragma once

#include <motet/io/stream.hpp>
