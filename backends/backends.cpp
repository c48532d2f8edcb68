// SPDX-License-Identifier: MIT
// The table of backends and the choice between them.
#include "backends.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <stdexcept>
#include <system_error>

#include "factories.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

struct entry {
  std::string_view name;
  std::unique_ptr<backend> (*make)(const backend_options&);
};

#define MOTET_ENTRY(name) entry{#name, &make_##name##_backend},
const std::array table{MOTET_BACKENDS(MOTET_ENTRY)};
#undef MOTET_ENTRY

/// Whether the kernel, or a filter in front of it, does not have this feature at all. Errors of
/// limits and lack of memory are thrown to the caller.
bool means_unsupported(const std::error_code& code) {
  return code == std::error_code(EPERM, std::system_category()) ||
         code == std::error_code(ENOSYS, std::system_category()) ||
         code == std::error_code(EINVAL, std::system_category());
}

/// Calls options.on_notice each time; without one, prints the line once per process.
void announce(const backend_options& options, const std::string& line) {
  static std::atomic<bool> announced{false};
  if (options.on_notice) {
    options.on_notice(line);
  } else if (!announced.exchange(true)) {
    std::fprintf(stderr, "motet: %s\n", line.c_str());
  }
}

std::unique_ptr<backend> first_that_works(const backend_options& options) {
  std::string refusals;
  for (const entry& each : table) {
    if (each.name == "sim" && table.size() > 1) continue;
    try {
      auto made = each.make(options);
      if (!refusals.empty()) announce(options, refusals + "using " + std::string(each.name));
      return made;
    } catch (const std::system_error& refused) {
      if (!means_unsupported(refused.code()) || &each == &table.back()) throw;
      refusals += std::string(each.name) + " is refused here (" + refused.what() + "), ";
    }
  }
  throw std::system_error(ENOSYS, std::system_category(), refusals + "no backend is left");
}

}  // namespace

std::vector<std::string_view> backend_names() {
  std::vector<std::string_view> names;
  for (const entry& each : table) names.push_back(each.name);
  return names;
}

std::unique_ptr<backend> make_backend(std::string_view name, const backend_options& options) {
  if (name.empty() || name == "auto") return first_that_works(options);
  std::string names;
  for (const entry& each : table) {
    if (each.name == name) return each.make(options);
    names += (names.empty() ? "" : ", ") + std::string(each.name);
  }
  throw std::invalid_argument("there is no backend \"" + std::string(name) +
                              "\" in this build; it has " + names);
}

}}}  // namespace motet::MOTET_ABI::detail
