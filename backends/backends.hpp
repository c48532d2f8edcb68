// SPDX-License-Identifier: MIT
// Which backends were built, and the choice between them.
#pragma once

#include <memory>
#include <motet/runtime/backend.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Returns: the names of the backends in this build, the preferred one first.
std::vector<std::string_view> backend_names();

/// Makes the backend of that name; "auto" or "" takes the first of the real backends that works on
/// this kernel, and calls `options.on_notice` if that was not the first choice.
/// Throws: std::invalid_argument if there is no such backend in this build; std::system_error if
///         the kernel refuses the named backend, or if there is no memory or descriptor for it.
std::unique_ptr<backend> make_backend(std::string_view name, const backend_options& options);

}}}  // namespace motet::MOTET_ABI::detail
