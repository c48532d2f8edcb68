// SPDX-License-Identifier: MIT
// The former path of motet/io/writer.hpp.
#pragma once

#include <motet/io/writer.hpp>
