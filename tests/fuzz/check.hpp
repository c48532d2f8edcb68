// SPDX-License-Identifier: MIT
// What every fuzzer needs: input in pieces, and an end of the program when a promise is broken.
#pragma once

#include <fuzzer/FuzzedDataProvider.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <motet/runtime/run.hpp>
#include <string>
#include <vector>

namespace fuzz {

inline void require(bool holds) {
  if (!holds) std::abort();
}

/// What comes in parts, and all of it.
struct parts_and_all {
  explicit parts_and_all(FuzzedDataProvider& input) {
    while (input.remaining_bytes() > 0) {
      const auto size = input.ConsumeIntegralInRange<std::size_t>(1, 400);
      parts.push_back(input.ConsumeBytesAsString(size));
      whole += parts.back();
    }
  }

  std::vector<std::string> parts;
  std::string whole;
};

/// Requires that `understood`, which is called on the simulation, makes the same of the input in
/// parts and of all of it at once.
/// Returns: what it made.
template <typename F>
std::string same_in_parts(const std::uint8_t* data, std::size_t size, F understood) {
  FuzzedDataProvider input(data, size);
  const parts_and_all pieces(input);
  motet::options settings;
  settings.backend = "sim";
  return motet::run(settings, [&] {
    std::string result = understood(pieces.parts);
    require(result == understood({pieces.whole}));
    return result;
  });
}

}  // namespace fuzz
