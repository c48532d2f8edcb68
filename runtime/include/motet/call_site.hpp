// SPDX-License-Identifier: MIT
// The former path of motet/base/call_site.hpp.
#pragma once

#include <motet/base/call_site.hpp>
