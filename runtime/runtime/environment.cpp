// SPDX-License-Identifier: MIT
// See runtime/environment.hpp.
#include "runtime/environment.hpp"

#include <atomic>
#include <bit>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "core/hooks.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

constexpr std::uint32_t an_hour_in_ms = 3'600'000;

/// Returns: the number; 0 if the variable is not set, empty, or 0.
std::uint32_t number_in(const char* variable, bool (*fits)(std::uint32_t), const char* rule) {
  const char* const value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return 0;
  const std::string_view text(value);
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  if (is_number && (number == 0 || fits(number))) return number;
  throw std::invalid_argument(std::string(variable) + " is \"" + value + "\", and must be " + rule);
}

std::uint32_t stall_report() {
  constexpr auto fits = [](std::uint32_t ms) { return ms >= 5 && ms <= an_hour_in_ms; };
  return number_in("MOTET_STALL_REPORT", fits, "0, or 5 to 3600000 (milliseconds)");
}

std::uint32_t offload_limit() {
  constexpr auto fits = [](std::uint32_t count) { return count <= 65'536; };
  return number_in("MOTET_OFFLOAD_LIMIT", fits, "0 to 65536");
}

std::uint32_t trace_records() {
  constexpr auto fits = [](std::uint32_t count) {
    return std::has_single_bit(count) && count >= 1'024 && count <= 16'777'216;
  };
  return number_in("MOTET_TRACE_RECORDS", fits, "0, or a power of two from 1024 to 16777216");
}

/// The limit is one of the process: the variable is its first value, which any runtime may change.
std::atomic<bool> offload_limit_is_set{false};

}  // namespace

options completed_by_environment(const options& settings) {
  options complete = settings;
  const std::uint32_t limit = offload_limit();
  if (!offload_limit_is_set.exchange(true) && settings.offload_limit == 0)
    complete.offload_limit = limit;
  if (hooks.prepare == nullptr) return complete;
  const std::uint32_t stall = stall_report();
  if (settings.stall_report.count() == 0) complete.stall_report = std::chrono::milliseconds(stall);
  const std::uint32_t records = trace_records();
  if (records > 0 && settings.trace.records == trace_options().records)
    complete.trace.records = records;
  return complete;
}

}}}  // namespace motet::MOTET_ABI::detail
