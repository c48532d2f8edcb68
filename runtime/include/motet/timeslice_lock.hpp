// SPDX-License-Identifier: MIT
// The former path of motet/sync/timeslice_lock.hpp.
#pragma once

#include <motet/sync/timeslice_lock.hpp>
