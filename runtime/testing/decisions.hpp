// SPDX-License-Identifier: MIT
// All choices of a simulation: drawn from its seed, written down, and read again in a replay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <motet/detail/base/abi.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace motet { inline namespace MOTET_ABI { namespace testing {

/// What is decided.
enum class choice : char {
  wake = 'w',     // the order of fibers that one instant wakes: how many come before the next one
  branch = 'b',   // the branch that select() takes
  next = 'n',     // the runnable fiber that runs
  program = 'p',  // world::random()
  buggify = 'f',
  latency = 'l',   // of a packet, in steps
  transfer = 's',  // how many bytes of those that are possible
  fault = 'x',     // of the network: the highest numbers
  crash = 'c'      // whether the peers of a host that crashes are told
};

struct decision {
  choice kind{};
  std::uint32_t options = 0;  // how many there were
  std::uint32_t taken = 0;    // in [0, options)

  friend bool operator==(const decision&, const decision&) = default;
};

/// Returns: "3 of 7, kind n".
std::string text_of(const decision& one);

/// Draws from a seed, or follows a log and then draws.
class decisions {
 public:
  explicit decisions(std::uint64_t seed) noexcept : state_(seed) {}
  decisions(std::uint64_t seed, std::vector<decision> log) noexcept
      : state_(seed), log_(std::move(log)) {}

  /// Returns: a number in [0, options), of which there must be one.
  std::uint32_t decide(choice kind, std::uint32_t options);
  /// The decisions made so far.
  std::vector<decision> made() const;
  std::size_t count() const noexcept { return count_; }
  /// Returns: how the program differs from the one whose log is followed, from the first decision
  ///          that it does not know; or nothing.
  const std::optional<std::string>& difference() const noexcept { return difference_; }

 private:
  std::uint64_t next_bits() noexcept;

  std::uint64_t state_;
  std::vector<decision> log_;
  std::size_t count_ = 0;
  std::optional<std::string> difference_;
};

/// A log as a text: a line for the version, and one for each decision.
std::string text_of(const std::vector<decision>& log);
/// Throws: std::invalid_argument with the number of the line that is not of a log.
std::vector<decision> log_of(std::string_view text);

}}}  // namespace motet::MOTET_ABI::testing
