// SPDX-License-Identifier: MIT
// Options that the environment chooses, unless the program does.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <motet/motet.hpp>
#include <motet/observe/stats.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

#include "catch.hpp"

namespace {

using namespace motet;
using namespace std::chrono_literals;

/// A variable of the environment, for as long as this lives.
class variable {
 public:
  variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  variable(const variable&) = delete;
  variable& operator=(const variable&) = delete;
  ~variable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

std::string refusal_of(const char* name, const char* value) {
  const variable set(name, value);
  try {
    run([] {});
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("options.offload_limit: MOTET_OFFLOAD_LIMIT applies unless the program has set it") {
  const variable set("MOTET_OFFLOAD_LIMIT", "3");
  run([] { CHECK(stats().offload_limit == 3); });
  options chosen;
  chosen.offload_limit = 5;
  run(chosen, [] { CHECK(stats().offload_limit == 5); });
  run([] { CHECK(stats().offload_limit == 5); });
}

TEST_CASE("options.stall_report: MOTET_STALL_REPORT reports a fiber that computes for longer") {
  const variable set("MOTET_STALL_REPORT", "20");
  std::atomic<bool> is_reported{false};
  options chosen;
  chosen.on_notice = [&](std::string_view line) {
    if (line.find("has held thread") != std::string_view::npos) is_reported = true;
  };
  run(chosen, [&] {
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (!is_reported && std::chrono::steady_clock::now() < end) {
    }
  });
  CHECK(is_reported);
}

TEST_CASE("run() rejects variables of the environment that are no numbers, or out of range") {
  for (const char* const value : {"50ms", "1", "-5", "3600001"}) {
    CHECK(refusal_of("MOTET_STALL_REPORT", value) ==
          "MOTET_STALL_REPORT is \"" + std::string(value) +
              "\", and must be 0, or 5 to 3600000 (milliseconds)");
  }
  CHECK(refusal_of("MOTET_OFFLOAD_LIMIT", "-1") ==
        "MOTET_OFFLOAD_LIMIT is \"-1\", and must be 0 to 65536");
  CHECK(refusal_of("MOTET_OFFLOAD_LIMIT", "65537").find("65537") != std::string::npos);
  CHECK(refusal_of("MOTET_TRACE_RECORDS", "1000").find("must be 0, or a power of two from 1024") !=
        std::string::npos);
  CHECK(refusal_of("MOTET_TRACE_RECORDS", "").empty());
  CHECK(refusal_of("MOTET_STALL_REPORT", "0").empty());
}
