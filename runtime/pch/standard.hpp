// SPDX-License-Identifier: MIT
// Precompiled: what much of the library includes. Each file still names what it uses: some builds
// are made without this one.
#ifndef MOTET_STANDARD
#define MOTET_STANDARD

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>
#endif
