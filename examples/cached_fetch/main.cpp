// SPDX-License-Identifier: MIT
// The cached fetch: a user interface that knows no fibers asks for values, which are looked for in
// two caches at once and else come from a server. Each step runs where it belongs, on the threads
// for work, for sockets, or the user's, and yet fetcher.cpp tells it as one story. A request may be
// cancelled at any time, and has a time limit as a whole and one for the network; its asker is told
// once, and no cache is left with half of it.
//
// Without arguments it plays a scenario and prints what happened, a line of JSON each. --help has
// the rest.
#include <csignal>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>

#include "checks/run.hpp"
#include "load.hpp"
#include "options.hpp"
#include "scenario.hpp"
#include "summary.hpp"

namespace cached_fetch { namespace {

[[noreturn]] void serve(const options& all) {
  server here(all.port, all.server);
  motet::group serving;
  serving.spin([&] { here.serve(); });
  while (!here.is_ready()) motet::sleep_for(std::chrono::milliseconds(1));
  std::cout << "listening on " << here.where().to_string() << std::endl;
  motet::sleep();
}

void fetch(const options& all, std::ostream& events) {
  plan how = all.how;
  how.server = motet::net::endpoint::loopback(all.port);
  const temporary_directory none;
  event_log log;
  std::string summary;
  {
    house here(all.size, all.cache_directory.value_or(none.path()), log);
    std::vector<request_ref> asked;
    for (const std::string& key : all.keys) asked.push_back(here.ask(key, how));
    std::vector<outcome> outcomes;
    for (const request_ref& each : asked) outcomes.push_back(each->await());
    summary = summarize(here, outcomes);
  }
  write_events(events, log);
  std::cout << summary;
}

bool play(const options& all, std::ostream& events) {
  switch (all.what) {
    case mode::scenario:
      return play_scenario(events);
    case mode::serve:
      serve(all);
    case mode::fetch:
      fetch(all, events);
      return true;
    case mode::check:
      return run_check(all);
    case mode::load:
      std::cout << run_load(all);
      return true;
    case mode::help:
      std::cout << usage();
      return true;
  }
  return false;
}

}}  // namespace cached_fetch

int main(int count, char** words) {
  try {
    const cached_fetch::options all = cached_fetch::parse_options(count, words);
    if (!all.events) return cached_fetch::play(all, std::cout) ? EXIT_SUCCESS : EXIT_FAILURE;
    std::ofstream events(*all.events);
    return cached_fetch::play(all, events) ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const std::invalid_argument& error) {
    std::cerr << "cached_fetch: " << error.what() << '\n' << cached_fetch::usage();
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "cached_fetch: " << error.what() << '\n';
    return EXIT_FAILURE;
  }
}
