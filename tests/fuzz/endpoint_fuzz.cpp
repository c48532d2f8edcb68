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
    const endpoint found =
        endpoint::parse(std::string_view(reinterpret_cast<const char*>(data), size));
    const std::string text = found.to_string();
    fuzz::require(endpoint::parse(text) == found);
    fuzz::require(endpoint(found.address(), found.length()).to_string() == text);
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
