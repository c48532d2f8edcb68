// SPDX-License-Identifier: MIT
// Precompiled: what every file here includes and no change to this program touches.
#ifndef CACHED_FETCH_PRELUDE
#define CACHED_FETCH_PRELUDE

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <motet/motet.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>
#endif
