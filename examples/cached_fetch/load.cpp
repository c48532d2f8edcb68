// SPDX-License-Identifier: MIT
// See load.hpp.
#include "load.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace cached_fetch {

namespace {

double percentile(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
}

}  // namespace

/// One fiber for each that is under way, which asks for the next when it has been answered.
std::string run_load(const options& all) {
  plan how = all.how;
  how.server = motet::net::endpoint::loopback(all.port);
  how.overall = how.network = std::chrono::seconds(60);
  const temporary_directory none;
  event_log log;
  log.turn_off();
  measure_no_stretches();
  house here(all.size, all.cache_directory.value_or(none.path()), log);

  std::vector<double> latencies;
  const auto begin = steady::now();
  {
    motet::group askers;
    int next = 0;
    for (int i = 0; i < std::min(all.in_flight, all.requests); ++i) {
      askers.spin([&] {
        while (next < all.requests) {
          const request_ref asked = here.fetch().handle_key("key " + std::to_string(next++), how);
          if (asked->await().how != outcome::kind::value) {
            throw std::runtime_error(asked->key() + ": " + describe(asked->await()));
          }
          const std::chrono::duration<double, std::micro> took = steady::now() - asked->asked_at();
          latencies.push_back(took.count());
        }
      });
    }
    askers.await_all();
  }
  const std::chrono::duration<double> seconds = steady::now() - begin;
  std::sort(latencies.begin(), latencies.end());

  std::ostringstream out;
  out << "{\"requests\":" << latencies.size() << ",\"seconds\":" << seconds.count()
      << ",\"requests_per_second\":" << static_cast<double>(latencies.size()) / seconds.count()
      << ",\"p50_us\":" << percentile(latencies, 0.5)
      << ",\"p99_us\":" << percentile(latencies, 0.99) << "}\n";
  return std::move(out).str();
}

}  // namespace cached_fetch
