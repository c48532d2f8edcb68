// SPDX-License-Identifier: MIT
// The former path of motet/sync/future.hpp.
#pragma once

#include <motet/sync/future.hpp>
