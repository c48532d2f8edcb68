// SPDX-License-Identifier: MIT
// A program's own backend, in the place of those of the library.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <motet/motet.hpp>
#include <stdexcept>
#include <string>

#include "backends/poll_backend.hpp"
#include "catch.hpp"
#include "fixtures.hpp"
#include "io/streams.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::bytes_of;
using testing::make_pipe;
using testing::poll_backend;
using testing::read_text;

namespace {

options over_poll(int& made) {
  options chosen;
  chosen.make_backend = [&made](const backend_options&) {
    ++made;
    return std::make_unique<poll_backend>();
  };
  return chosen;
}

}  // namespace

TEST_CASE("a program runs on a backend of its own", "[backend]") {
  int made = 0;
  run(over_poll(made), [] {
    CHECK(backend_name() == "poll");
    const auto pipe = make_pipe();
    auto reader = spin([&] { return read_text(pipe.first()); });
    sleep_for(1ms);
    io::write(pipe.second(), bytes_of("abc"));
    CHECK(reader.await() == "abc");
    const auto from = clock::now();
    CHECK_THROWS_AS(with_timeout(5ms, [&] { read_text(pipe.first()); }), timed_out);
    CHECK(clock::now() - from >= 5ms);
    CHECK(offload([] { return 7; }) == 7);
  });
  CHECK(made == 1);
}

TEST_CASE("each thread makes a backend of its own, and a forked child another", "[backend]") {
  int made = 0;
  run(over_poll(made), [&] {
    thread other(over_poll(made), [] { CHECK(backend_name() == "poll"); });
    other.await();
    CHECK(made == 2);
    const pid_t child = ::fork();
    if (child == 0) {
      sleep_for(1ms);
      ::_exit(made == 3 && backend_name() == "poll" ? 0 : 1);
    }
    int status = -1;
    CHECK(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  });
}

TEST_CASE("a factory that makes no backend is told so, and its exceptions are thrown",
          "[backend]") {
  options chosen;
  chosen.make_backend = [](const backend_options&) { return std::unique_ptr<backend>(); };
  CHECK_THROWS_AS(run(chosen, [] {}), std::invalid_argument);
  chosen.make_backend = [](const backend_options&) -> std::unique_ptr<backend> {
    throw std::runtime_error("no kernel today");
  };
  CHECK_THROWS_WITH(run(chosen, [] {}), "no kernel today");
}
