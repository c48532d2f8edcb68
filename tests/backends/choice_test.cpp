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

TEST_CASE("options::backend names the backend that is used", "[choice]") {
  const std::string name = std::getenv("MOTET_BACKEND");
  run([&] { CHECK(backend_name() == name); });
  options settings;
  settings.backend = "sim";
  run(settings, [] { CHECK(backend_name() == "sim"); });
  CHECK(detail::make_backend(name, {})->name() == name);
}

TEST_CASE("backend sim comes last, and auto takes a real backend if there is one", "[choice]") {
  const auto names = detail::backend_names();
  REQUIRE_FALSE(names.empty());
  CHECK(names.back() == "sim");
  const auto result = detail::make_backend("auto", {});
  CHECK((result->name() != "sim" || names.size() == 1));
}

TEST_CASE("options::backend rejects an unknown name, and lists the known ones", "[choice]") {
  options settings;
  settings.backend = "kqueue";
  std::string text;
  try {
    run(settings, [] {});
  } catch (const std::invalid_argument& refused) {
    text = refused.what();
  }
  CHECK(text.find("kqueue") != std::string::npos);
  for (const auto name : detail::backend_names()) {
    CHECK(text.find(name) != std::string::npos);
  }
  run([] {});  // nothing is left of the attempt
}

TEST_CASE("options::ring_submissions and ring_completions reject invalid sizes", "[choice]") {
  const auto refused = [](unsigned submissions, unsigned completions) {
    options settings;
    settings.ring_submissions = submissions;
    settings.ring_completions = completions;
    CHECK_THROWS_AS(run(settings, [] {}), std::invalid_argument);
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
