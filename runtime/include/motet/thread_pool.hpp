// SPDX-License-Identifier: MIT
// The former path of motet/threads/thread_pool.hpp.
#pragma once

#include <motet/threads/thread_pool.hpp>
