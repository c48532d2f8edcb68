// SPDX-License-Identifier: MIT
// Catch2, v2.13 or v3: only what both have is used.
#pragma once

#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_test_macros.hpp>
#else
#include <catch2/catch.hpp>
#endif
