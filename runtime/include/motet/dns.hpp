// SPDX-License-Identifier: MIT
// The former path of motet/net/dns.hpp.
#pragma once

#include <motet/net/dns.hpp>
