// SPDX-License-Identifier: MIT
// Which interruption is thrown when several interrupt a fiber.
#pragma once

#include <cstdint>
#include <motet/detail/core/scope.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// What kind of interruption a switchpoint throws.
enum class interruption_kind : std::uint8_t { none, raised, cancellation, failure, scope };
struct effective_interruption {
  interruption_kind kind = interruption_kind::none;
  scope* source = nullptr;
  explicit operator bool() const noexcept { return kind != interruption_kind::none; }
};

}}}  // namespace motet::MOTET_ABI::detail
