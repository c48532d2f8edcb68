// SPDX-License-Identifier: MIT
// Plays one check. If nothing but a time was too long it is played again: this machine may have
// been busy with something else.
#include "run.hpp"

#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <random>
#include <stdexcept>
#include <thread>

#include "checks.hpp"

namespace cached_fetch {

namespace {

constexpr int most_tries = 5;

using check = std::function<void(report&, const options&)>;

const std::map<std::string, check>& checks() {
  static const auto plain = [](void (*play)(report&)) {
    return [play](report& found, const options&) { play(found); };
  };
  static const std::map<std::string, check> known{
      {"C1", plain(&check_cold_and_warm)},
      {"C2", plain(&check_first_hit)},
      {"C3", plain(&check_stalled_caches)},
      {"C4", plain(&check_cancel)},
      {"C5", plain(&check_cancel_while_keeping)},
      {"C6", plain(&check_network_limit)},
      {"C7", plain(&check_overall_limit)},
      {"C8", plain(&check_errors)},
      {"C9", [](report& found, const options& all) { check_crowd(found, all.requests); }},
      {"C10",
       [](report& found, const options& all) {
         check_chaos(found, all.length, all.seed.value_or(std::random_device{}()));
       }},
  };
  return known;
}

void say(const options& all, const char* kind, const std::vector<std::string>& what) {
  for (const std::string& each : what) std::cout << all.check << kind << each << std::endl;
}

}  // namespace

void play_whole(report& found, const std::function<void()>& play) {
  // What comes with the first wait of this thread, and with a first thread under a sanitizer,
  // stays. The kernel lists a thread for a moment longer than somebody can join it.
  std::thread([] {}).join();
  motet::sleep_for(std::chrono::milliseconds(20));
  const std::size_t descriptors = count_descriptors();
  const std::size_t threads = count_threads();
  try {
    play();
  } catch (const std::exception& error) {
    found.expect(false, std::string("an exception: ") + error.what());
  }
  // The kernel may be a moment late with what has been given back.
  const auto all_back = [&] {
    return count_threads() <= threads && count_descriptors() == descriptors;
  };
  for (int i = 0; i < 100 && !all_back(); ++i) motet::sleep_for(std::chrono::milliseconds(10));
  const std::size_t left = count_descriptors();
  found.expect(count_threads() <= threads, "threads are left");
  found.expect(left == descriptors, "descriptors are left: " + std::to_string(left) + " of " +
                                        std::to_string(descriptors));
}

bool run_check(const options& all) {
  const auto chosen = checks().find(all.check);
  if (chosen == checks().end()) throw std::invalid_argument("there is no check " + all.check);
  for (int attempt = 1; attempt <= most_tries; ++attempt) {
    report found(all.slack, all.watched);
    play_whole(found, [&] { chosen->second(found, all); });
    say(all, ": ", found.remarks());
    say(all, ": BROKEN: ", found.broken());
    say(all, ": late: ", found.late());
    if (!found.broken().empty()) return false;
    if (found.late().empty()) {
      std::cout << all.check << " holds" << std::endl;
      return true;
    }
  }
  return false;
}

}  // namespace cached_fetch
