// SPDX-License-Identifier: MIT
// The former path of motet/cancellation/cancel.hpp.
#pragma once

#include <motet/cancellation/cancel.hpp>
