// SPDX-License-Identifier: MIT
// The former path of motet/base/version.hpp.
#pragma once

#include <motet/base/version.hpp>
