// SPDX-License-Identifier: MIT
// The former path of motet/io/signal_set.hpp.
#pragma once

#include <motet/io/signal_set.hpp>
