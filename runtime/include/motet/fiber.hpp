// SPDX-License-Identifier: MIT
// The former path of motet/fibers/fiber.hpp.
#pragma once

#include <motet/fibers/fiber.hpp>
