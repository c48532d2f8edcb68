// SPDX-License-Identifier: MIT
// What every fuzzer needs: input in pieces, and an end of the program when a promise is broken.
#pragma once

#include <fuzzer/FuzzedDataProvider.h>

#include <cstdlib>

namespace fuzz {

inline void require(bool kept) {
  if (!kept) std::abort();
}

}  // namespace fuzz
