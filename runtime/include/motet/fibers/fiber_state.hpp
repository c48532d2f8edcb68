// SPDX-License-Identifier: MIT
// The states of a fiber and the answers to cancel().
#pragma once

#include <cstdint>
#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI {

enum class fiber_state : std::uint8_t {
  runnable,  // in its thread's run queue
  running,   // its thread executes it now
  waiting,   // parked until it is resumed
  dead,      // over; its outcome never changes again
};

enum class cancel_result : std::uint8_t {
  accepted,  // the fiber will be interrupted
  already,   // the fiber had been cancelled before; the first reason stays
  finished,  // too late: the body had ended
};

}}  // namespace motet::MOTET_ABI
