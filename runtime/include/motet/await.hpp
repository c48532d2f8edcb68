// SPDX-License-Identifier: MIT
// The former path of motet/fibers/await.hpp.
#pragma once

#include <motet/fibers/await.hpp>
