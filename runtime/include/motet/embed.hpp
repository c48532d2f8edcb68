// SPDX-License-Identifier: MIT
// The former path of motet/runtime/embed.hpp.
#pragma once

#include <motet/runtime/embed.hpp>
