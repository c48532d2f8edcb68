// SPDX-License-Identifier: MIT
// See http/server/date.hpp.
#include "http/server/date.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>

#include "http/text.hpp"

namespace motet { inline namespace MOTET_ABI { namespace http {

namespace {

constexpr std::array<const char*, 7> days = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::array<const char*, 12> months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

using date_text = std::array<char, 64>;

std::size_t write_date(std::time_t time, date_text& text) noexcept {
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  // Not strftime(3), whose names are those of the program's language.
  return static_cast<std::size_t>(
      std::snprintf(text.data(), text.size(), "%s, %02d %s %d %02d:%02d:%02d GMT",
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
  timespec present{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &present);
  if (present.tv_sec != last.second) {
    last.second = present.tv_sec;
    last.size = write_date(present.tv_sec, last.text);
  }
  return {last.text.data(), last.size};
}

namespace {

/// Whether `text` is as the pattern says: "d" a digit, "a" a letter, " " a space, the rest itself.
bool is_like(std::string_view text, std::string_view pattern) noexcept {
  const auto fits = [](char c, char rule) {
    const char letter = lower(c);
    if (rule == 'd') return is_digit(c);
    return rule == 'a' ? letter >= 'a' && letter <= 'z' : c == rule;
  };
  return std::equal(text.begin(), text.end(), pattern.begin(), pattern.end(), fits);
}

int number_at(std::string_view text, std::size_t position, std::size_t digits) noexcept {
  int number = 0;
  for (const char c : text.substr(position, digits))
    number = 10 * number + (c == ' ' ? 0 : c - '0');
  return number;
}

/// Returns: std::nullopt if a part is out of range.
std::optional<std::time_t> time_from(int year, std::string_view month, int day,
                                     std::string_view clock) noexcept {
  std::tm parts{};
  const auto* entry = std::find(months.begin(), months.end(), month);
  parts.tm_year = year - 1900;
  parts.tm_mon = static_cast<int>(entry - months.begin());
  parts.tm_mday = day;
  parts.tm_hour = number_at(clock, 0, 2);
  parts.tm_min = number_at(clock, 3, 2);
  parts.tm_sec = number_at(clock, 6, 2);
  const bool is_time = parts.tm_hour < 24 && parts.tm_min < 60 && parts.tm_sec <= 60;
  if (entry == months.end() || day < 1 || day > 31 || !is_time) return std::nullopt;
  return ::timegm(&parts);
}

/// "Sun, 06 Nov 1994 08:49:37 GMT"
std::optional<std::time_t> read_preferred(std::string_view text) noexcept {
  if (!is_like(text, "aaa, dd aaa dddd dd:dd:dd GMT")) return std::nullopt;
  return time_from(number_at(text, 12, 4), text.substr(8, 3), number_at(text, 5, 2),
                   text.substr(17));
}

/// "Sunday, 06-Nov-94 08:49:37 GMT": a year more than 50 years ahead belongs to the previous
/// century.
std::optional<std::time_t> read_rfc_850(std::string_view text) noexcept {
  split_before(text, ',');
  if (!is_like(text, " dd-aaa-dd dd:dd:dd GMT")) return std::nullopt;
  const std::time_t seconds = std::time(nullptr);
  std::tm present{};
  ::gmtime_r(&seconds, &present);
  const int year = (present.tm_year + 1900) / 100 * 100 + number_at(text, 8, 2);
  present.tm_year += 50;
  const auto in_year = [&](int number) {
    return time_from(number, text.substr(4, 3), number_at(text, 1, 2), text.substr(11));
  };
  const std::optional<std::time_t> date = in_year(year);
  return date.has_value() && *date > ::timegm(&present) ? in_year(year - 100) : date;
}

/// "Sun Nov  6 08:49:37 1994"
std::optional<std::time_t> read_asctime(std::string_view text) noexcept {
  if (!is_like(text, "aaa aaa dd dd:dd:dd dddd") && !is_like(text, "aaa aaa  d dd:dd:dd dddd")) {
    return std::nullopt;
  }
  return time_from(number_at(text, 20, 4), text.substr(4, 3), number_at(text, 8, 2),
                   text.substr(11, 8));
}

}  // namespace

/// Source: RFC 9110, 5.6.7: all three formats are to be understood.
std::optional<std::time_t> time_of(std::string_view text) noexcept {
  for (const auto reader : {read_preferred, read_rfc_850, read_asctime}) {
    if (const std::optional<std::time_t> date = reader(text)) return date;
  }
  return std::nullopt;
}

}}}  // namespace motet::MOTET_ABI::http
