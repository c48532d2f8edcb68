// SPDX-License-Identifier: MIT
// The former path of motet/cancellation/cancel_reason.hpp.
#pragma once

#include <motet/cancellation/cancel_reason.hpp>
