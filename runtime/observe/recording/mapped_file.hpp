// SPDX-License-Identifier: MIT
// Mappings of a file that somebody may truncate meanwhile: a write to what is gone would end the
// process by SIGBUS. The handler puts anonymous memory in its place, so the program goes on, and
// what it writes there is lost.
#pragma once

#include <cstddef>
#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

/// Gives the range room on the disk, and maps it for the rest of the process's life.
/// Throws: std::system_error, of which SIGXFSZ is one: std::errc::file_too_large; std::bad_alloc.
void* map_of_file(int fd, std::size_t offset, std::size_t size);

}}}  // namespace motet::MOTET_ABI::detail
