// SPDX-License-Identifier: MIT
// The former path of motet/threads/offload.hpp.
#pragma once

#include <motet/threads/offload.hpp>
