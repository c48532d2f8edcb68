// SPDX-License-Identifier: MIT
// The texts of motet's errors.
#include <motet/errors.hpp>

namespace motet { inline namespace MOTET_ABI {

fiber_cancelled::fiber_cancelled(const std::string& fiber, const char* reason)
    : std::runtime_error("fiber " + fiber + " was cancelled: " + reason),
      fiber_(fiber),
      reason_(reason) {}

timed_out::timed_out(call_site where)
    : std::system_error(
          std::make_error_code(std::errc::timed_out),
          "time limit set at " + std::string(where.file) + ":" + std::to_string(where.line)) {}

namespace detail {

void throw_errno(int error, const char* call, int fd) {
  throw std::system_error(error, std::system_category(),
                          std::string(call) + "(fd " + std::to_string(fd) + ")");
}

void throw_errno(int error, const char* call) {
  throw std::system_error(error, std::system_category(), call);
}

}  // namespace detail

}}  // namespace motet::MOTET_ABI
