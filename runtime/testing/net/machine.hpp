// SPDX-License-Identifier: MIT
// A machine of the simulated network, and where the code of a host runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <motet/base/clock.hpp>
#include <motet/detail/base/abi.hpp>
#include <string>

namespace motet { inline namespace MOTET_ABI { namespace testing {

struct machine {
  std::string name;
  std::uint32_t address = 0;  // IPv4, in the byte order of the processor
  bool up = true;
  unsigned life = 1;                // counts its starts
  std::size_t descriptors = 0;      // open sockets
  clock::time_point quiet_until{};  // after a crash, when its fibers have been cancelled
  std::uint16_t next_port = 32'768;
};

/// Returns: its address, such as "10.0.0.2".
std::string text_of(const machine& host);

/// A machine in one of its lives: what a fiber belongs to, and each socket.
struct residence {
  machine* owner = nullptr;  // null: the machine of the function under test
  unsigned life = 0;

  bool alive() const noexcept { return owner->up && owner->life == life; }
  friend bool operator==(const residence&, const residence&) = default;
};

/// Returns: that of the running fiber, which its children inherit.
residence& present_residence();

/// An address and a port.
struct place {
  std::uint32_t address = 0;  // as machine::address
  std::uint16_t port = 0;

  bool is_any() const noexcept { return address == 0; }
  bool is_loopback() const noexcept { return address >> 24 == 127; }
  friend bool operator==(const place&, const place&) = default;
};

constexpr std::uint32_t loopback_address = 0x7f000001;

}}}  // namespace motet::MOTET_ABI::testing
