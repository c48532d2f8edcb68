// SPDX-License-Identifier: MIT
// Failures that no fiber is left to receive.
#pragma once

#include <exception>
#include <motet/runtime/options.hpp>
#include <utility>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// The texts of the lines that are printed by default.
inline constexpr char fiber_failed[] = "unhandled exception in a fiber";
inline constexpr char never_thrown[] =
    "an exception was raised in a fiber that ended before it could be thrown";

/// Gives `error` to settings.on_unhandled; without one, prints a line and lets the process end with
/// exit code 1. Any thread.
[[gnu::noinline]] void report_unhandled(const options& settings, const std::exception_ptr& error,
                                        const char* line = fiber_failed) noexcept;

/// Holds an exception passed to raise() that no switchpoint has thrown; the destructor passes it to
/// report_unhandled(). It can be kept in a value_slot until a fiber destroys it.
class undelivered {
 public:
  undelivered(const options& settings, std::exception_ptr error) noexcept
      : settings_(&settings), error_(std::move(error)) {}
  undelivered(undelivered&&) noexcept = default;
  undelivered& operator=(undelivered&&) = delete;
  ~undelivered() {
    if (error_ != nullptr) report_unhandled(*settings_, error_, never_thrown);
  }

 private:
  const options* settings_;
  std::exception_ptr error_;
};

}}}  // namespace motet::MOTET_ABI::detail
