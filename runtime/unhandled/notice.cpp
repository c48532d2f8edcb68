// SPDX-License-Identifier: MIT
// See unhandled/notice.hpp.
#include "unhandled/notice.hpp"

#include <cstdio>

namespace motet { inline namespace MOTET_ABI { namespace detail {

void notice(const options& settings, std::string_view line) noexcept {
  try {
    if (settings.on_notice) {
      settings.on_notice(line);
      return;
    }
  } catch (...) {
    // A notice is no reason to fail; it goes where notices go by default.
  }
  std::fprintf(stderr, "motet: %.*s\n", static_cast<int>(line.size()), line.data());
}

}}}  // namespace motet::MOTET_ABI::detail
