// SPDX-License-Identifier: MIT
// What every fuzzer needs: input in pieces, and an end of the program when a promise is broken.
#pragma once

#include <fuzzer/FuzzedDataProvider.h>

#include <cstddef>
#include <cstdlib>
#include <string>
#include <vector>

namespace fuzz {

inline void require(bool kept) {
  if (!kept) std::abort();
}

/// What comes in parts, and all of it.
struct parts_and_all {
  explicit parts_and_all(FuzzedDataProvider& input) {
    while (input.remaining_bytes() > 0) {
      const auto size = input.ConsumeIntegralInRange<std::size_t>(1, 400);
      parts.push_back(input.ConsumeBytesAsString(size));
      all += parts.back();
    }
  }

  std::vector<std::string> parts;
  std::string all;
};

}  // namespace fuzz
