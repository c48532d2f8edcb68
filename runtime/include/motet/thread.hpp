// SPDX-License-Identifier: MIT
// The former path of motet/threads/thread.hpp.
#pragma once

#include <motet/threads/thread.hpp>
