// SPDX-License-Identifier: MIT
// The former path of motet/base/errors.hpp.
#pragma once

#include <motet/base/errors.hpp>
