// SPDX-License-Identifier: MIT
// See testing/decisions.hpp.
#include "testing/decisions.hpp"

#include <sstream>
#include <stdexcept>

#include "base/mixed_bits.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

namespace {

constexpr std::string_view first_line = "motet decisions 1";
constexpr std::string_view first_line_then_zero = "motet decisions 1, then 0";

int width_of(std::uint32_t options) noexcept {
  return options <= 1U << 8 ? 1 : options <= 1U << 16 ? 2 : 4;
}

bool is_known(char kind) noexcept {
  return std::string_view("wbntpflsxoedc").find(kind) != std::string_view::npos;
}

}  // namespace

std::string text_of(const decision& one) {
  return std::to_string(one.taken) + " of " + std::to_string(one.options) + ", kind " +
         static_cast<char>(one.kind);
}

/// Source: splitmix64 (Steele, Lea, Flood, 2014).
std::uint64_t decisions::next_bits() noexcept {
  state_ += 0x9e3779b97f4a7c15U;
  return detail::mixed_bits(state_);
}

std::uint32_t decisions::next_of_bytes(std::uint32_t options) noexcept {
  std::uint32_t value = 0;
  for (int i = 0; i < width_of(options); ++i) {
    const bool has_ended = bytes_read_ == bytes_->size();
    value = value << 8 | (has_ended ? 0 : static_cast<unsigned char>((*bytes_)[bytes_read_++]));
  }
  return value % options;
}

/// A number is drawn even where the log has one, so that the same seed continues the log.
std::uint32_t decisions::decide(choice kind, std::uint32_t options) {
  decision one{kind, options, static_cast<std::uint32_t>(next_bits() % options)};
  if (bytes_.has_value()) one.taken = next_of_bytes(options);
  if (then_zero_) one.taken = 0;
  const std::size_t place = count_++;
  if (place >= log_.size() || difference_.has_value()) {
    log_.resize(place);
    log_.push_back(one);
    return one.taken;
  }
  if (log_[place].kind == kind && log_[place].options == options) return log_[place].taken;
  difference_ = "decision " + std::to_string(place) + " was " + text_of(log_[place]) +
                ", and is one of " + std::to_string(options) + ", kind " + static_cast<char>(kind);
  log_.resize(place);
  log_.push_back(one);
  return one.taken;
}

clock::duration decisions::decide_span(choice kind, clock::duration shortest,
                                       clock::duration longest) {
  constexpr std::uint32_t steps = 16;
  if (longest <= shortest) return shortest;
  return shortest + (longest - shortest) * decide(kind, steps) / (steps - 1);
}

std::vector<decision> decisions::made() const {
  return {log_.begin(), log_.begin() + static_cast<std::ptrdiff_t>(count_)};
}

std::string text_of(const decision_log& log) {
  std::ostringstream text;
  text << (log.then_zero ? first_line_then_zero : first_line) << '\n';
  for (const decision& one : log.made)
    text << static_cast<char>(one.kind) << ' ' << one.options << ' ' << one.taken << '\n';
  return text.str();
}

decision_log log_of(std::string_view text) {
  std::istringstream lines{std::string(text)};
  decision_log log;
  std::string line;
  std::size_t number = 1;
  const auto refuse = [&] {
    throw std::invalid_argument("a log of decisions has a line that is not one: line " +
                                std::to_string(number) + ": " + line);
  };
  if (!std::getline(lines, line)) refuse();
  log.then_zero = line == first_line_then_zero;
  if (!log.then_zero && line != first_line) refuse();
  while (std::getline(lines, line)) {
    ++number;
    std::istringstream words(line);
    char kind = 0;
    decision one;
    if (!(words >> kind >> one.options >> one.taken) || !is_known(kind) || one.taken >= one.options)
      refuse();
    one.kind = static_cast<choice>(kind);
    log.made.push_back(one);
  }
  return log;
}

std::string bytes_of(const std::vector<decision>& log) {
  std::string bytes;
  for (const decision& one : log) {
    for (int i = width_of(one.options) - 1; i >= 0; --i)
      bytes += static_cast<char>(one.taken >> 8 * i & 0xff);
  }
  while (bytes.ends_with('\0')) bytes.pop_back();
  return bytes;
}

}}}  // namespace motet::MOTET_ABI::testing
