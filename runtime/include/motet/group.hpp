// SPDX-License-Identifier: MIT
// A set of fibers that end before the group does, and the calls that wait for several fibers.
#pragma once

#include <motet/await.hpp>                      // await_all(), await_any(), first_value()
#include <motet/detail/fibers/group_start.hpp>  // class group
