// SPDX-License-Identifier: MIT
// The table of backends and the choice between them.
#include "backends.hpp"

#include <algorithm>
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

/// Whether another backend may work where this one does not: the kernel lacks a feature, a filter
/// or a security module refuses it, or its memory counts against a limit, as that of rings against
/// RLIMIT_MEMLOCK. A lack of descriptors would stop the others as well.
bool another_may_work(const std::error_code& code) {
  constexpr std::array refusals{EPERM, EACCES, ENOSYS, EINVAL, EOPNOTSUPP, ENODEV, ENOMEM};
  return code.category() == std::system_category() &&
         std::find(refusals.begin(), refusals.end(), code.value()) != refusals.end();
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
  std::error_code last(ENOSYS, std::system_category());
  for (const entry& candidate : table) {
    if (candidate.name == "sim" && table.size() > 1) continue;
    try {
      auto result = candidate.make(options);
      if (!refusals.empty()) announce(options, refusals + "using " + std::string(candidate.name));
      return result;
    } catch (const std::system_error& e) {
      if (!another_may_work(e.code()) || &candidate == &table.back()) throw;
      last = e.code();
      refusals += std::string(candidate.name) + " is refused here (" + e.what() + "), ";
    }
  }
  throw std::system_error(last, refusals + "no backend is left");
}

}  // namespace

std::vector<std::string_view> backend_names() {
  std::vector<std::string_view> names;
  names.reserve(std::size(table));
  for (const entry& candidate : table) names.push_back(candidate.name);
  return names;
}

std::unique_ptr<backend> make_backend(std::string_view name, const backend_options& options) {
  if (name.empty() || name == "auto") return first_that_works(options);
  std::string names;
  for (const entry& candidate : table) {
    if (candidate.name == name) return candidate.make(options);
    names += (names.empty() ? "" : ", ") + std::string(candidate.name);
  }
  throw std::invalid_argument("there is no backend \"" + std::string(name) +
                              "\" in this build; it has " + names);
}

}}}  // namespace motet::MOTET_ABI::detail
