// SPDX-License-Identifier: MIT
// Plays a check. If only a time was too long, the check is played again, because the machine may
// have been busy with other programs.
#include "run.hpp"

#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <random>
#include <stdexcept>
#include <thread>

#include "checks.hpp"

namespace fetch_test {

namespace {

constexpr int most_tries = 5;

using check = std::function<void(report&, const options&)>;

const std::map<std::string, check>& checks() {
  static const auto plain = [](void (*play)(report&)) {
    return [play](report& findings, const options&) { play(findings); };
  };
  static const std::map<std::string, check> table{
      {"C1", plain(&check_cold_and_warm)},
      {"C2", plain(&check_first_hit)},
      {"C3", plain(&check_stalled_caches)},
      {"C4", plain(&check_cancel)},
      {"C5", plain(&check_cancel_while_keeping)},
      {"C6", plain(&check_network_limit)},
      {"C7", plain(&check_overall_limit)},
      {"C8", plain(&check_errors)},
      {"C9",
       [](report& findings, const options& settings) { check_crowd(findings, settings.requests); }},
      {"C10",
       [](report& findings, const options& settings) {
         check_chaos(findings, settings.length, settings.seed.value_or(std::random_device{}()));
       }},
  };
  return table;
}

void say(const options& settings, const char* kind, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) std::cout << settings.check << kind << line << std::endl;
}

}  // namespace

void play_whole(report& findings, const std::function<void()>& play) {
  // The first wait of this thread, and a first thread under a sanitizer, open descriptors that
  // stay. The kernel lists a thread for a moment after its end.
  std::thread([] {}).join();
  motet::sleep_for(std::chrono::milliseconds(20));
  const std::size_t descriptors = count_descriptors();
  const std::size_t threads = count_threads();
  try {
    play();
  } catch (const std::exception& error) {
    findings.expect(false, std::string("an exception: ") + error.what());
  }
  // The kernel may release threads and descriptors a moment late.
  const auto is_balanced = [&] {
    return count_threads() <= threads && count_descriptors() == descriptors;
  };
  for (int i = 0; i < 100 && !is_balanced(); ++i) motet::sleep_for(std::chrono::milliseconds(10));
  const std::size_t rest = count_descriptors();
  findings.expect(count_threads() <= threads, "threads are left");
  findings.expect(rest == descriptors, "descriptors are left: " + std::to_string(rest) + " of " +
                                           std::to_string(descriptors));
}

bool run_check(const options& settings) {
  const auto entry = checks().find(settings.check);
  if (entry == checks().end()) throw std::invalid_argument("there is no check " + settings.check);
  for (int attempt = 1; attempt <= most_tries; ++attempt) {
    report findings(settings.slack, settings.watched);
    play_whole(findings, [&] { entry->second(findings, settings); });
    say(settings, ": ", findings.remarks());
    say(settings, ": BROKEN: ", findings.broken());
    say(settings, ": late: ", findings.late());
    if (!findings.broken().empty()) return false;
    if (findings.late().empty()) {
      std::cout << settings.check << " holds" << std::endl;
      return true;
    }
  }
  return false;
}

}  // namespace fetch_test
