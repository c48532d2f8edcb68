// SPDX-License-Identifier: MIT
// A library that was built without the room observe.
#include <chrono>
#include <motet/base/errors.hpp>
#include <motet/runtime/options.hpp>
#include <motet/runtime/run.hpp>
#include <motet/sync/channel.hpp>
#include <stdexcept>

#include "catch.hpp"

using namespace motet;

TEST_CASE("run() refuses options that a library without observe cannot honour") {
  options settings;
  SECTION("trace.file") {
    settings.trace.file = "/nonexistent/trace";
  }
  SECTION("stall_report") {
    settings.stall_report = std::chrono::milliseconds(50);
  }
  SECTION("dump_signal") {
    settings.dump_signal = 10;
  }
  CHECK_THROWS_WITH(run(settings, [] {}), Catch::Contains("built with observe"));
}

TEST_CASE("deadlock::what() lists no fibers in a library without observe") {
  CHECK_THROWS_WITH(run([] { (void)channel<int>().pop(); }),
                    "every fiber of this thread waits and nothing pends that could wake one");
}
