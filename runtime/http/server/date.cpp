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

namespace {

/// A date as one of the formats has it; its month is still a name.
struct read_date {
  std::tm parts{};
  std::array<char, 4> month{};
  bool whole = false;
};

/// "Sun, 06 Nov 1994 08:49:37 GMT"
read_date read_preferred(const char* text, std::size_t size) noexcept {
  read_date found;
  std::tm& parts = found.parts;
  int end = 0;
  const int read =
      std::sscanf(text, "%*3s, %2d %3s %4d %2d:%2d:%2d GMT%n", &parts.tm_mday, found.month.data(),
                  &parts.tm_year, &parts.tm_hour, &parts.tm_min, &parts.tm_sec, &end);
  found.whole = read == 6 && static_cast<std::size_t>(end) == size;
  return found;
}

/// "Sunday, 06-Nov-94 08:49:37 GMT": a year that seems more than 50 years ahead is of the century
/// before.
read_date read_rfc_850(const char* text, std::size_t size) noexcept {
  read_date found;
  std::tm& parts = found.parts;
  int end = 0;
  const int read = std::sscanf(text, "%*9[a-zA-Z], %2d-%3[a-zA-Z]-%2d %2d:%2d:%2d GMT%n",
                               &parts.tm_mday, found.month.data(), &parts.tm_year, &parts.tm_hour,
                               &parts.tm_min, &parts.tm_sec, &end);
  found.whole = read == 6 && static_cast<std::size_t>(end) == size;
  const std::time_t now = std::time(nullptr);
  std::tm present{};
  ::gmtime_r(&now, &present);
  const int this_year = present.tm_year + 1900;
  parts.tm_year += this_year / 100 * 100;
  if (parts.tm_year > this_year + 50) parts.tm_year -= 100;
  return found;
}

/// "Sun Nov  6 08:49:37 1994"
read_date read_asctime(const char* text, std::size_t size) noexcept {
  read_date found;
  std::tm& parts = found.parts;
  int end = 0;
  const int read =
      std::sscanf(text, "%*3s %3s %2d %2d:%2d:%2d %4d%n", found.month.data(), &parts.tm_mday,
                  &parts.tm_hour, &parts.tm_min, &parts.tm_sec, &parts.tm_year, &end);
  found.whole = read == 6 && static_cast<std::size_t>(end) == size;
  return found;
}

}  // namespace

/// Source: RFC 9110, 5.6.7: all three formats are to be understood.
std::optional<std::time_t> time_of(std::string_view text) noexcept {
  date_text copy{};
  if (text.size() >= copy.size()) return std::nullopt;
  std::copy(text.begin(), text.end(), copy.begin());
  for (const auto read : {read_preferred, read_rfc_850, read_asctime}) {
    read_date found = read(copy.data(), text.size());
    const auto month =
        std::find(months.begin(), months.end(), std::string_view(found.month.data()));
    if (!found.whole || month == months.end()) continue;
    found.parts.tm_year -= 1900;
    found.parts.tm_mon = static_cast<int>(month - months.begin());
    return ::timegm(&found.parts);
  }
  return std::nullopt;
}

}}}  // namespace motet::MOTET_ABI::http
