// SPDX-License-Identifier: MIT
// See http/server/date.hpp.
#include "http/server/date.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>

namespace motet { inline namespace MOTET_ABI { namespace http {

namespace {

constexpr std::array<const char*, 7> days = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::array<const char*, 12> months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

using date_text = std::array<char, 64>;

std::size_t write_date(std::time_t time, date_text& to) noexcept {
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  // Not strftime(3), whose names are those of the program's language.
  return static_cast<std::size_t>(
      std::snprintf(to.data(), to.size(), "%s, %02d %s %d %02d:%02d:%02d GMT",
                    days[static_cast<std::size_t>(parts.tm_wday)], parts.tm_mday,
                    months[static_cast<std::size_t>(parts.tm_mon)], parts.tm_year + 1900,
                    parts.tm_hour, parts.tm_min, parts.tm_sec));
}

}  // namespace

std::string date_of(std::time_t time) {
  date_text text;
  return {text.data(), write_date(time, text)};
}

std::string_view date_of_now() noexcept {
  struct last_date {
    std::time_t second = -1;
    std::size_t size = 0;
    date_text text;
  };
  static thread_local last_date last;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  if (now.tv_sec != last.second) {
    last.second = now.tv_sec;
    last.size = write_date(now.tv_sec, last.text);
  }
  return {last.text.data(), last.size};
}

std::optional<std::time_t> time_of(std::string_view text) noexcept {
  date_text copy{};
  if (text.size() >= copy.size()) return std::nullopt;
  std::copy(text.begin(), text.end(), copy.begin());
  std::tm parts{};
  std::array<char, 4> month{};
  int end = 0;
  const int read =
      std::sscanf(copy.data(), "%*3s, %2d %3s %4d %2d:%2d:%2d GMT%n", &parts.tm_mday, month.data(),
                  &parts.tm_year, &parts.tm_hour, &parts.tm_min, &parts.tm_sec, &end);
  const auto found = std::find(months.begin(), months.end(), std::string_view(month.data()));
  if (read != 6 || static_cast<std::size_t>(end) != text.size() || found == months.end()) {
    return std::nullopt;
  }
  parts.tm_year -= 1900;
  parts.tm_mon = static_cast<int>(found - months.begin());
  return ::timegm(&parts);
}

}}}  // namespace motet::MOTET_ABI::http
