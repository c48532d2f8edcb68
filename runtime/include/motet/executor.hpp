// SPDX-License-Identifier: MIT
// The former path of motet/threads/portal.hpp.
#pragma once

#include <motet/threads/portal.hpp>
