// SPDX-License-Identifier: MIT
// The texts of motet's errors.
#include <motet/errors.hpp>

namespace motet { inline namespace MOTET_ABI {

namespace {

/// What people are told of a long chain: so many causes, and the last of all.
constexpr unsigned most_causes_told = 3;

std::string with_place(const cancel_reason& why) {
  const call_site at = why.asked_at();
  if (at.file[0] == '\0') return why.reason();
  return std::string(why.reason()) + " (" + at.file + ":" + std::to_string(at.line) + ")";
}

std::string with_causes(const cancel_reason& why) {
  std::string told = with_place(why);
  unsigned count = 0;
  for (const cancel_reason* each = why.cause(); each != nullptr; each = each->cause()) {
    const bool last = each->cause() == nullptr;
    if (++count > most_causes_told && !last) continue;
    told += count > most_causes_told + 1 ? "; ...; because: " : "; because: ";
    told += with_place(*each);
  }
  return told;
}

}  // namespace

fiber_cancelled::fiber_cancelled(const std::string& fiber, const cancel_reason& why)
    : std::runtime_error("fiber " + fiber + " was cancelled: " + with_causes(why)),
      fiber_(fiber),
      why_(why) {}

fiber_cancelled::fiber_cancelled(const std::string& fiber, const char* reason)
    : fiber_cancelled(fiber, detail::interruption::reason(reason)) {}

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
