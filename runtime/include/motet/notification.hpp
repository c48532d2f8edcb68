// SPDX-License-Identifier: MIT
// The former path of motet/sync/notification.hpp.
#pragma once

#include <motet/sync/notification.hpp>
