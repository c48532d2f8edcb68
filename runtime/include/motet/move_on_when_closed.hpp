// SPDX-License-Identifier: MIT
// The former path of motet/cancellation/move_on_when_closed.hpp.
#pragma once

#include <motet/cancellation/move_on_when_closed.hpp>
