// SPDX-License-Identifier: MIT
// What a user asks for, what comes of it, and what the fetcher needs of a user interface. Nothing
// here knows of fibers.
#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>

namespace cached_fetch {

struct request {
  std::string key;
  std::stop_token stop = {};
  std::chrono::milliseconds overall_limit{1000};
  std::chrono::milliseconds network_limit{500};
};

struct outcome {
  enum class kind { value, cancelled, timed_out_overall, timed_out_network, error, ui_closed };

  kind end = kind::error;
  std::string text = {};  // the value, or the reason of an error
};

class user_interface {
 public:
  virtual ~user_interface() = default;

  /// Has `f` called by the user's thread, soon. This makes a user interface an executor.
  /// Throws: motet::executor_stopped once the user interface is closed.
  virtual void post(std::function<void()> f) = 0;
  /// Is called on the user's thread, once for each request.
  virtual void show(const std::string& key, const outcome& result) = 0;
};

}  // namespace cached_fetch
