// SPDX-License-Identifier: MIT
// Catch2, v2.13 or v3: only what both have is used.
#pragma once

// An exception in what is checked is not caught there: it ends the test, as elsewhere in its code,
// and thousands of checks compile more quickly.
#define CATCH_CONFIG_FAST_COMPILE

#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_test_macros.hpp>
#else
#include <catch2/catch.hpp>
#endif
