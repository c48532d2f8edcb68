// SPDX-License-Identifier: MIT
// The former path of motet/sync/event.hpp.
#pragma once

#include <motet/sync/event.hpp>
