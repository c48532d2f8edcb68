// SPDX-License-Identifier: MIT
// How one request goes: its server, its limits, and what hinders its caches.
#pragma once

#include <chrono>
#include <motet/net/endpoint.hpp>
#include <string>

#include "../../../examples/cached_fetch/user_interface.hpp"

namespace fetch_test {

using cached_fetch::outcome;
using std::chrono::milliseconds;

struct plan {
  motet::net::endpoint server = {};
  milliseconds overall{1000};
  milliseconds network{500};
  milliseconds mem_get{0};
  milliseconds mem_set{0};
  milliseconds disk_get{0};
  milliseconds disk_set{0};
  bool disk_blocks = false;    // its delay blocks the thread
  bool disk_is_full = false;   // its set throws
  bool mem_is_broken = false;  // its get throws
};

inline std::string name_of(outcome::kind end) {
  switch (end) {
    case outcome::kind::value:
      return "value";
    case outcome::kind::cancelled:
      return "cancelled";
    case outcome::kind::timed_out_overall:
      return "timed_out overall";
    case outcome::kind::timed_out_network:
      return "timed_out network";
    case outcome::kind::error:
      return "error";
    case outcome::kind::ui_closed:
      return "executor_stopped";
  }
  return "?";
}

/// For the log and for people: with the reason of an error, without the text of a value.
inline std::string describe(const outcome& result) {
  const bool has_reason = result.end == outcome::kind::error;
  return has_reason ? name_of(result.end) + ": " + result.text : name_of(result.end);
}

}  // namespace fetch_test
