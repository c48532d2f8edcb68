// SPDX-License-Identifier: MIT
// Which interruption is thrown when several interrupt a fiber.
#pragma once

#include <cstdint>
#include <motet/detail/core/scope.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Whose word a switchpoint throws.
enum class speaks : std::uint8_t { nobody, raised, cancellation, failure, scope };
struct speaker {
  speaks what = speaks::nobody;
  scope* which = nullptr;
  explicit operator bool() const noexcept { return what != speaks::nobody; }
};

}}}  // namespace motet::MOTET_ABI::detail
