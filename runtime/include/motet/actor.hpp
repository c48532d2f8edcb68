// SPDX-License-Identifier: MIT
// The former path of motet/sync/actor.hpp.
#pragma once

#include <motet/sync/actor.hpp>
