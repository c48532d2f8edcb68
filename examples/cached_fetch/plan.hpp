// SPDX-License-Identifier: MIT
// How one request is to go, and what has become of it.
#pragma once

#include <chrono>
#include <motet/net/endpoint.hpp>
#include <string>
#include <utility>

namespace cached_fetch {

using std::chrono::milliseconds;

/// The delays are there to make what takes time visible.
struct plan {
  motet::net::endpoint server = {};
  milliseconds overall{1000};
  milliseconds network{500};
  milliseconds mem_get{0};
  milliseconds mem_set{0};
  milliseconds disk_get{0};
  milliseconds disk_set{0};
  bool disk_blocks = false;    // its delay keeps the whole thread
  bool disk_is_full = false;   // its set throws
  bool mem_is_broken = false;  // its get throws
};

/// What the user interface is told of a request; the last it cannot be told.
struct outcome {
  enum class kind { value, cancelled, timed_out_overall, timed_out_network, error, ui_closed };

  kind how = kind::error;
  std::string text = {};  // the value, or what the error was
};

inline std::string name_of(outcome::kind how) {
  switch (how) {
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

/// For the log and for people: an error has its reason, a value not its text.
inline std::string describe(const outcome& what) {
  const bool reason = what.how == outcome::kind::error;
  return reason ? name_of(what.how) + ": " + what.text : name_of(what.how);
}

}  // namespace cached_fetch
