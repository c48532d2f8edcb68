// SPDX-License-Identifier: MIT
// Precompiled: what every test includes and no change to motet touches.
#ifndef MOTET_TESTS_PRELUDE
#define MOTET_TESTS_PRELUDE

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#endif
