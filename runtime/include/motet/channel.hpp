// SPDX-License-Identifier: MIT
// The former path of motet/sync/channel.hpp.
#pragma once

#include <motet/sync/channel.hpp>
