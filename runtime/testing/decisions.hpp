// SPDX-License-Identifier: MIT
// All choices of a simulation: drawn from its seed, written down, and read again in a replay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <motet/base/clock.hpp>
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
  thread = 't',   // the thread that runs, if several can; for order::pct, a priority
  program = 'p',  // world::random()
  buggify = 'f',
  latency = 'l',   // of a packet, in steps
  transfer = 's',  // how many bytes of those that are possible
  fault = 'x',     // of the network: the highest numbers
  offload = 'o',   // how long an offloaded call waits for a thread
  change = 'e',    // when and how order::pct changes priorities
  disk = 'd',      // what a power failure leaves
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

/// Decisions to follow.
struct decision_log {
  std::vector<decision> made = {};
  bool then_zero = false;  // after the end of the log every decision is 0, and not the seed's
};

/// Draws from a seed, or follows a log and then draws, or reads bytes.
class decisions {
 public:
  explicit decisions(std::uint64_t seed, decision_log log = {}) noexcept
      : state_(seed), log_(std::move(log.made)), then_zero_(log.then_zero) {}
  /// A decision of up to 256, 65,536 or more options reads one, two or four bytes, the highest
  /// first; when they have ended, all are 0. Any bytes will do, in any program.
  explicit decisions(std::string bytes) noexcept : bytes_(std::move(bytes)) {}

  /// Returns: a number in [0, options), of which there must be one.
  std::uint32_t decide(choice kind, std::uint32_t options);
  /// Returns: one of sixteen spans, equally far apart, of which the first is `shortest`.
  clock::duration decide_span(choice kind, clock::duration shortest, clock::duration longest);
  /// The decisions made so far.
  std::vector<decision> made() const;
  std::size_t count() const noexcept { return count_; }
  /// Returns: how the program differs from the one whose log is followed, from the first decision
  ///          that it does not know; or nothing.
  const std::optional<std::string>& difference() const noexcept { return difference_; }

 private:
  std::uint64_t next_bits() noexcept;
  std::uint32_t next_of_bytes(std::uint32_t options) noexcept;

  std::uint64_t state_ = 0;
  std::vector<decision> log_;
  bool then_zero_ = false;
  std::optional<std::string> bytes_;
  std::size_t bytes_read_ = 0;
  std::size_t count_ = 0;
  std::optional<std::string> difference_;
};

/// A log as a text: a line for the version, and one for each decision.
std::string text_of(const decision_log& log);
/// Throws: std::invalid_argument with the number of the line that is not of a log.
decision_log log_of(std::string_view text);
/// Returns: the bytes of which these decisions are read, without zeros at the end.
std::string bytes_of(const std::vector<decision>& log);

}}}  // namespace motet::MOTET_ABI::testing
