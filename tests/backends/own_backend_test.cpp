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

options over_poll(int& count) {
  options settings;
  settings.make_backend = [&count](const backend_options&) {
    ++count;
    return std::make_unique<poll_backend>();
  };
  return settings;
}

}  // namespace

TEST_CASE("options::make_backend runs a program on a backend of its own", "[backend]") {
  int count = 0;
  run(over_poll(count), [] {
    CHECK(backend_name() == "poll");
    const auto pipe = make_pipe();
    auto reader = spin([&] { return read_text(pipe.first()); });
    sleep_for(1ms);
    io::write(pipe.second(), bytes_of("abc"));
    CHECK(reader.await() == "abc");
    const auto start = clock::now();
    CHECK_THROWS_AS(with_timeout(5ms, [&] { read_text(pipe.first()); }), timed_out);
    CHECK(clock::now() - start >= 5ms);
    CHECK(offload([] { return 7; }) == 7);
  });
  CHECK(count == 1);
}

TEST_CASE("options::make_backend makes a backend for each thread and for a forked child",
          "[backend]") {
  int count = 0;
  run(over_poll(count), [&] {
    thread worker(over_poll(count), [] { CHECK(backend_name() == "poll"); });
    worker.await();
    CHECK(count == 2);
    const pid_t child = ::fork();
    if (child == 0) {
      sleep_for(1ms);
      ::_exit(count == 3 && backend_name() == "poll" ? 0 : 1);
    }
    int status = -1;
    CHECK(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  });
}

TEST_CASE("options::make_backend rejects a null backend, and throws what the factory throws",
          "[backend]") {
  options settings;
  settings.make_backend = [](const backend_options&) { return std::unique_ptr<backend>(); };
  CHECK_THROWS_AS(run(settings, [] {}), std::invalid_argument);
  settings.make_backend = [](const backend_options&) -> std::unique_ptr<backend> {
    throw std::runtime_error("no kernel today");
  };
  CHECK_THROWS_WITH(run(settings, [] {}), "no kernel today");
}
