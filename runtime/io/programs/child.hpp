// SPDX-License-Identifier: MIT
// A program that has just been started as a child of this process.
#pragma once

#include <sys/types.h>

#include <array>
#include <motet/io/fd.hpp>
#include <motet/io/pipe.hpp>
#include <motet/io/process.hpp>

namespace motet { inline namespace MOTET_ABI { namespace detail {

struct spawned_child {
  pid_t id = -1;
  fd pidfd;
  std::array<pipe, 3> pipes;  // our ends of its standard streams
};

/// Throws: as process::start().
spawned_child spawn_child(const process_options& options);

}}}  // namespace motet::MOTET_ABI::detail
