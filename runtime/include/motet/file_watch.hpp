// SPDX-License-Identifier: MIT
// The former path of motet/io/file_watch.hpp.
#pragma once

#include <motet/io/file_watch.hpp>
