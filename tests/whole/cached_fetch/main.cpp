// SPDX-License-Identifier: MIT
// The checks of examples/cached_fetch: its fetcher, between caches, servers and a user interface
// that are slow, broken, silent or closed. tests/whole/cached_fetch_test.py lists the checks and
// plays them.
//
// Without arguments the program plays six requests, the picture of docs/teleports.md. --help has
// the rest.
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>

#include "checks/checks.hpp"
#include "checks/run.hpp"
#include "options.hpp"
#include "story.hpp"
#include "summary.hpp"

namespace fetch_test { namespace {

[[noreturn]] void serve(const options& settings) {
  server origin(settings.port, settings.server);
  motet::group fibers;
  fibers.spin([&] { origin.serve(); });
  while (!origin.is_ready()) motet::sleep_for(std::chrono::milliseconds(1));
  std::cout << "listening on " << origin.where().to_string() << std::endl;
  motet::sleep();
}

void fetch(const options& settings, std::ostream& events) {
  plan course = settings.course;
  course.server = motet::net::endpoint::loopback(settings.port);
  const temporary_directory directory;
  event_log log;
  std::string summary;
  {
    house home(settings.size, settings.cache_directory.value_or(directory.path()), log);
    std::vector<question_ref> wishes;
    for (const std::string& key : settings.keys) wishes.push_back(home.ask(key, course));
    std::vector<outcome> outcomes;
    for (const question_ref& wish : wishes) outcomes.push_back(wish->await());
    summary = summarize(home, outcomes);
  }
  write_events(events, log);
  std::cout << summary;
}

bool play(const options& settings, std::ostream& events) {
  switch (settings.chosen_mode) {
    case mode::story:
      return play_story(events);
    case mode::serve:
      serve(settings);
    case mode::fetch:
      fetch(settings, events);
      return true;
    case mode::check:
      return run_check(settings);
    case mode::help:
      std::cout << usage();
      return true;
  }
  return false;
}

/// Only C9 has motet watch its threads: in the other checks a thread may be blocked on purpose.
bool run(const options& settings) {
  motet::options runtime;
  if (settings.check == "C9") {
    runtime.stall_report = std::chrono::duration_cast<milliseconds>(longest_run * settings.slack);
  }
  return motet::run(runtime, [&] {
    if (!settings.events) return play(settings, std::cout);
    std::ofstream events(*settings.events);
    return play(settings, events);
  });
}

}}  // namespace fetch_test

int main(int count, char** words) {
  try {
    const fetch_test::options settings = fetch_test::parse_options(count, words);
    return fetch_test::run(settings) ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const std::invalid_argument& error) {
    std::cerr << "cached_fetch_checks: " << error.what() << '\n' << fetch_test::usage();
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "cached_fetch_checks: " << error.what() << '\n';
    return EXIT_FAILURE;
  }
}
