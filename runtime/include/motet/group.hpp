// SPDX-License-Identifier: MIT
// The former path of motet/fibers/group.hpp and motet/fibers/await.hpp.
#pragma once

#include <motet/fibers/await.hpp>
#include <motet/fibers/group.hpp>
#include <motet/sync/future.hpp>
