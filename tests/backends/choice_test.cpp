// SPDX-License-Identifier: MIT
// The choice of a backend as far as one process can see it; choice_test.py starts programs on
// kernels that refuse.
#include <cstdlib>
#include <motet/motet.hpp>
#include <string>

#include "backends.hpp"
#include "catch.hpp"
#include "support.hpp"

using namespace motet;

TEST_CASE("a backend that is named is used", "[choice]") {
  const std::string wanted = std::getenv("MOTET_BACKEND");
  run([&] { CHECK(backend_name() == wanted); });
  options chosen;
  chosen.backend = "sim";
  run(chosen, [] { CHECK(backend_name() == "sim"); });
  CHECK(detail::make_backend(wanted, {})->name() == wanted);
}

TEST_CASE("sim comes last, and is not what auto takes when there is a real one", "[choice]") {
  const auto names = detail::backend_names();
  REQUIRE_FALSE(names.empty());
  CHECK(names.back() == "sim");
  const auto made = detail::make_backend("auto", {});
  CHECK((made->name() != "sim" || names.size() == 1));
}

TEST_CASE("an unknown backend is refused with the names of those there are", "[choice]") {
  options chosen;
  chosen.backend = "kqueue";
  std::string text;
  try {
    run(chosen, [] {});
  } catch (const std::invalid_argument& refused) {
    text = refused.what();
  }
  CHECK(text.find("kqueue") != std::string::npos);
  for (const auto name : detail::backend_names()) {
    CHECK(text.find(name) != std::string::npos);
  }
  run([] {});  // nothing is left of the attempt
}

TEST_CASE("ring sizes that cannot be are refused", "[choice]") {
  const auto refused = [](unsigned submissions, unsigned completions) {
    options chosen;
    chosen.ring_submissions = submissions;
    chosen.ring_completions = completions;
    CHECK_THROWS_AS(run(chosen, [] {}), std::invalid_argument);
  };
  refused(0, 4096);
  refused(3, 4096);
  refused(65536, 65536);
  refused(256, 0);
  refused(256, 1);
  refused(256, 5000);
  refused(256, 131072);
  refused(256, 128);
  options smallest;
  smallest.ring_submissions = 1;
  smallest.ring_completions = 2;
  run(smallest, [] {
    auto pipe = testing::make_pipe();
    auto reader = spin([&] {
      std::byte byte[1];
      return io::read(pipe.first(), byte);
    });
    snooze();
    io::write(pipe.second(), testing::bytes_of("x"));
    CHECK(reader.await() == 1);
  });
}
