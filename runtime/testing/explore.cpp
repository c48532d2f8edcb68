// SPDX-License-Identifier: MIT
// Many runs of one simulation.
#include <stdlib.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <motet/io/fd.hpp>
#include <motet/testing.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "testing/decisions.hpp"
#include "testing/run_by.hpp"
#include "testing/shrink.hpp"

namespace motet { inline namespace MOTET_ABI { namespace testing {

namespace {

constexpr std::size_t runs_per_repetition = 20;

/// Returns: the variable's value; nothing if it is not set, or empty.
std::optional<std::string> variable(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

/// Throws: std::invalid_argument.
std::uint64_t number_of(std::string_view text, const char* name) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw std::invalid_argument(std::string(name) + " is not a number: " + std::string(text));
  return number;
}

struct seed_range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  // the first one that is not in it
};

/// `text` is how many, or the first seed, a minus sign and the last one.
seed_range range_of(std::string_view text) {
  const std::size_t minus = text.find('-');
  if (minus == std::string_view::npos) return {0, number_of(text, "MOTET_SEEDS")};
  const seed_range range{number_of(text.substr(0, minus), "MOTET_SEEDS"),
                         number_of(text.substr(minus + 1), "MOTET_SEEDS") + 1};
  if (range.begin >= range.end)
    throw std::invalid_argument("MOTET_SEEDS is an empty range: " + std::string(text));
  return range;
}

std::string contents(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::invalid_argument("MOTET_LOG: " + path + " cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Returns: the file, which is new; empty if none could be written.
std::string write_log(std::uint64_t seed, const std::string& log) {
  std::string path =
      variable("TMPDIR").value_or("/tmp") + "/motet-" + std::to_string(seed) + "-XXXXXX";
  const fd created(::mkstemp(path.data()));
  if (!created) return {};
  std::ofstream file(path);
  file << log;
  file.close();
  return file ? path : std::string();
}

void report(const outcome& failed) {
  const std::string path = write_log(failed.seed, failed.log);
  std::fprintf(
      stderr,
      "motet: the simulation failed with seed %llu, after %zu steps and %zu decisions: %s\n",
      static_cast<unsigned long long>(failed.seed), failed.steps, failed.decisions,
      failed.failure.c_str());
  std::fprintf(stderr, "motet: to repeat it, set MOTET_SEED=%llu%s%s\n",
               static_cast<unsigned long long>(failed.seed),
               path.empty() ? "" : " MOTET_LOG=", path.c_str());
}

void report_shrunk(const plan& how, const std::function<void(world&)>& function,
                   const outcome& failed) {
  const decision_log log = shrunk(how, function, failed);
  const std::string path = write_log(failed.seed, text_of(log));
  if (path.empty()) return;
  std::fprintf(stderr, "motet: %zu decisions are enough: MOTET_SEED=%llu MOTET_LOG=%s\n",
               log.made.size(), static_cast<unsigned long long>(failed.seed), path.c_str());
}

/// Returns: how the same seed ran when it was repeated, if that was not alike.
std::optional<outcome> differing(plan how, const std::function<void(world&)>& function,
                                 const outcome& first) {
  how.log = first.log;
  outcome second = run(how, function);
  const bool is_alike = second.passed && second.log == first.log && second.steps == first.steps &&
                        second.span == first.span;
  if (is_alike) return std::nullopt;
  if (second.passed) {
    second.failure = std::to_string(second.decisions) + " decisions, " +
                     std::to_string(second.steps) + " steps and " +
                     std::to_string(second.span.count()) + " ns instead of " +
                     std::to_string(first.decisions) + ", " + std::to_string(first.steps) +
                     " and " + std::to_string(first.span.count());
  }
  second.failure = "the same seed ran differently when it was repeated: " + second.failure;
  second.log = first.log;
  return second;
}

/// Returns: whether it passed.
bool passes(const plan& how, const std::function<void(world&)>& function, coverage* seen) {
  const outcome first = run_by(how, decisions(how.seed), function, seen);
  if (!first.passed) {
    report(first);
    report_shrunk(how, function, first);
    return false;
  }
  if (how.seed % runs_per_repetition != 0) return true;
  const std::optional<outcome> other = differing(how, function, first);
  if (other.has_value()) report(*other);
  return !other.has_value();
}

}  // namespace

namespace {

/// Returns: whether all passed.
bool pass_all(seed_range seeds, plan how, const std::function<void(world&)>& function) {
  coverage seen;
  coverage* const summary = variable("MOTET_SUMMARY").has_value() ? &seen : nullptr;
  bool has_passed = true;
  for (how.seed = seeds.begin; how.seed < seeds.end && has_passed; ++how.seed)
    has_passed = passes(how, function, summary);
  if (summary != nullptr) std::fputs(seen.text().c_str(), stderr);
  return has_passed;
}

}  // namespace

int explore(std::size_t seeds, const std::function<void(world&)>& function, plan how) {
  const std::optional<std::string> log = variable("MOTET_LOG");
  const std::optional<std::string> seed = variable("MOTET_SEED");
  if (log.has_value()) how.log = contents(*log);
  if (seed.has_value()) how.seed = number_of(*seed, "MOTET_SEED");
  if (seed.has_value() || log.has_value()) {
    const outcome repeated = run(how, function);
    if (!repeated.passed) report(repeated);
    return repeated.passed ? 0 : 1;
  }
  const std::optional<std::string> range = variable("MOTET_SEEDS");
  return pass_all(range.has_value() ? range_of(*range) : seed_range{0, seeds}, how, function) ? 0
                                                                                              : 1;
}

void fuzz(std::span<const std::byte> bytes, const std::function<void(world&)>& function,
          const plan& how) {
  std::string copy(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const outcome result = run_by(how, decisions(std::move(copy)), function);
  if (result.passed) return;
  report(result);
  std::abort();
}

}}}  // namespace motet::MOTET_ABI::testing
