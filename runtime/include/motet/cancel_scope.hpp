// SPDX-License-Identifier: MIT
// The former path of motet/cancellation/cancel_scope.hpp.
#pragma once

#include <motet/cancellation/cancel_scope.hpp>
