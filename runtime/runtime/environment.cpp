// SPDX-License-Identifier: MIT
// See runtime/environment.hpp. Whether a number is in the range of its option, run.cpp checks.
#include "runtime/environment.hpp"

#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "core/hooks.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

std::optional<std::uint32_t> number_in(const char* variable) {
  const char* const value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return std::nullopt;
  const std::string_view text(value);
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  throw std::invalid_argument(std::string(variable) + " is \"" + value + "\", not a number");
}

}  // namespace

options completed_by_environment(const options& settings) {
  options complete = settings;
  const bool has_observers = hooks.prepare != nullptr;
  if (settings.offload_limit == 0)
    complete.offload_limit = number_in("MOTET_OFFLOAD_LIMIT").value_or(0);
  if (settings.stall_report.count() == 0 && has_observers)
    complete.stall_report = std::chrono::milliseconds(number_in("MOTET_STALL_REPORT").value_or(0));
  if (settings.trace.records == trace_options().records && has_observers) {
    const std::optional<std::size_t> records = number_in("MOTET_TRACE_RECORDS");
    complete.trace.records = records.value_or(settings.trace.records);
  }
  return complete;
}

}}}  // namespace motet::MOTET_ABI::detail
