// SPDX-License-Identifier: MIT
// The texts of motet's errors.
#include <motet/errors.hpp>

namespace motet::inline MOTET_ABI {

fiber_cancelled::fiber_cancelled(const std::string& fiber, const char* reason)
    : std::runtime_error("fiber " + fiber + " was cancelled: " + reason),
      fiber_(fiber),
      reason_(reason) {}

namespace detail {

void throw_errno(int error, const char* call, int fd) {
  throw std::system_error(error, std::system_category(),
                          std::string(call) + "(fd " + std::to_string(fd) + ")");
}

void throw_errno(int error, const char* call) {
  throw std::system_error(error, std::system_category(), call);
}

}  // namespace detail

}  // namespace motet::inline MOTET_ABI
