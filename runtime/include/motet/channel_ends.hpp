// SPDX-License-Identifier: MIT
// The former path of motet/sync/channel_ends.hpp.
#pragma once

#include <motet/sync/channel_ends.hpp>
