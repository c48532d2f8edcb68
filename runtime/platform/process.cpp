// SPDX-License-Identifier: MIT
// See detail/platform/process.hpp.
#include <motet/detail/platform/process.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

constinit std::atomic<std::uint32_t> process_generation{0};

}}}  // namespace motet::MOTET_ABI::detail
