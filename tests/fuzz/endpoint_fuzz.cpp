// SPDX-License-Identifier: MIT
// What endpoint::parse() takes has a text, which it takes for the same endpoint.
#include <motet/net/endpoint.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

#include "check.hpp"

using motet::net::endpoint;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const endpoint result =
        endpoint::parse(std::string_view(reinterpret_cast<const char*>(data), size));
    const std::string text = result.to_string();
    fuzz::require(endpoint::parse(text) == result);
    fuzz::require(endpoint(result.address(), result.length()).to_string() == text);
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
