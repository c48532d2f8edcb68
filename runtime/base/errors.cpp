// SPDX-License-Identifier: MIT
// The texts of motet's errors.
#include <motet/base/errors.hpp>

namespace motet { inline namespace MOTET_ABI {

namespace {

/// A message lists this many causes of a long chain, and the last one.
constexpr unsigned most_causes_told = 3;

std::string with_place(const cancel_reason& reason) {
  const call_site site = reason.asked_at();
  if (site.file[0] == '\0') return reason.reason();
  return std::string(reason.reason()) + " (" + site.file + ":" + std::to_string(site.line) + ")";
}

std::string with_causes(const cancel_reason& reason) {
  std::string text = with_place(reason);
  unsigned count = 0;
  for (const cancel_reason* link = reason.cause(); link != nullptr; link = link->cause()) {
    const bool last = link->cause() == nullptr;
    if (++count > most_causes_told && !last) continue;
    text += count > most_causes_told + 1 ? "; ...; because: " : "; because: ";
    text += with_place(*link);
  }
  return text;
}

}  // namespace

fiber_cancelled::fiber_cancelled(const std::string& fiber, const cancel_reason& reason)
    : std::runtime_error("fiber " + fiber + " was cancelled: " + with_causes(reason)),
      fiber_(fiber),
      reason_(reason) {}

fiber_cancelled::fiber_cancelled(const std::string& fiber, const char* reason)
    : fiber_cancelled(fiber, detail::interruption::reason(reason)) {}

timed_out::timed_out(call_site site)
    : std::system_error(
          std::make_error_code(std::errc::timed_out),
          "time limit set at " + std::string(site.file) + ":" + std::to_string(site.line)) {}

items_missed::items_missed(std::uint64_t count)
    : std::runtime_error("the subscription missed " + std::to_string(count) + " items"),
      count_(count) {}

unexpected_eof::unexpected_eof(std::size_t count)
    : std::runtime_error("end of stream after " + std::to_string(count) +
                         " bytes, without the delimiter"),
      count_(count) {}

unexpected_eof::unexpected_eof(std::size_t count, std::size_t size)
    : std::runtime_error("end of stream after " + std::to_string(count) + " of " +
                         std::to_string(size) + " bytes"),
      count_(count) {}

limit_exceeded::limit_exceeded(std::size_t size, std::size_t limit)
    : std::length_error("at least " + std::to_string(size) + " bytes; the limit is " +
                        std::to_string(limit)),
      size_(size),
      limit_(limit) {}

all_failed::all_failed(std::vector<std::exception_ptr> errors)
    : std::runtime_error("all " + std::to_string(errors.size()) + " have failed"),
      errors_(std::move(errors)) {}

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
