// SPDX-License-Identifier: MIT
// See http/reason_phrase.hpp.
#include "http/reason_phrase.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace motet { inline namespace MOTET_ABI { namespace http {

namespace {

struct named_status {
  int code;
  std::string_view phrase;
};

/// In ascending order.
constexpr std::array<named_status, 45> table{{
    {100, "Continue"},
    {101, "Switching Protocols"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {203, "Non-Authoritative Information"},
    {204, "No Content"},
    {205, "Reset Content"},
    {206, "Partial Content"},
    {300, "Multiple Choices"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {402, "Payment Required"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {426, "Upgrade Required"},
    {428, "Precondition Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
}};

}  // namespace

std::string_view reason_phrase(int status) noexcept {
  const auto* entry =
      std::lower_bound(table.begin(), table.end(), status,
                       [](const named_status& row, int code) { return row.code < code; });
  return entry != table.end() && entry->code == status ? entry->phrase : std::string_view();
}

status_error standard_error(int status) {
  return status_error(status, std::string(reason_phrase(status)));
}

}}}  // namespace motet::MOTET_ABI::http
