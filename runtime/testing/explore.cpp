// SPDX-License-Identifier: MIT
// Many runs of one simulation.
#include <stdlib.h>

#include <charconv>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <motet/io/fd.hpp>
#include <motet/testing.hpp>
#include <optional>
#include <stdexcept>
#include <string>

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
std::uint64_t seed_of(const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw std::invalid_argument("MOTET_SEED is not a number: " + text);
  return number;
}

std::string contents(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::invalid_argument("MOTET_LOG: " + path + " cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Returns: the file, which is new; empty if none could be written.
std::string write_log(const outcome& failed) {
  std::string path =
      variable("TMPDIR").value_or("/tmp") + "/motet-" + std::to_string(failed.seed) + "-XXXXXX";
  const fd created(::mkstemp(path.data()));
  if (!created) return {};
  std::ofstream file(path);
  file << failed.log;
  file.close();
  return file ? path : std::string();
}

void report(const outcome& failed) {
  const std::string path = write_log(failed);
  std::fprintf(
      stderr,
      "motet: the simulation failed with seed %llu, after %zu steps and %zu decisions: %s\n",
      static_cast<unsigned long long>(failed.seed), failed.steps, failed.decisions,
      failed.failure.c_str());
  std::fprintf(stderr, "motet: to repeat it, set MOTET_SEED=%llu%s%s\n",
               static_cast<unsigned long long>(failed.seed),
               path.empty() ? "" : " MOTET_LOG=", path.c_str());
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
bool passes(const plan& how, const std::function<void(world&)>& function, bool runs_twice) {
  const outcome first = run(how, function);
  if (!first.passed) {
    report(first);
    return false;
  }
  if (!runs_twice) return true;
  const std::optional<outcome> other = differing(how, function, first);
  if (other.has_value()) report(*other);
  return !other.has_value();
}

}  // namespace

int explore(std::size_t seeds, const std::function<void(world&)>& function, plan how) {
  const std::optional<std::string> log = variable("MOTET_LOG");
  const std::optional<std::string> seed = variable("MOTET_SEED");
  if (log.has_value()) how.log = contents(*log);
  if (seed.has_value()) how.seed = seed_of(*seed);
  if (seed.has_value() || log.has_value()) return passes(how, function, false) ? 0 : 1;
  for (how.seed = 0; how.seed < seeds; ++how.seed) {
    if (!passes(how, function, how.seed % runs_per_repetition == 0)) return 1;
  }
  return 0;
}

}}}  // namespace motet::MOTET_ABI::testing
