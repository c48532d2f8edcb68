// SPDX-License-Identifier: MIT
// The former path of motet/sync/select.hpp.
#pragma once

#include <motet/sync/select.hpp>
