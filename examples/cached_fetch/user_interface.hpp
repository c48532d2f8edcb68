// SPDX-License-Identifier: MIT
// What the user sees. Only ever touched on the loop's thread, so it needs no lock; it notes if it
// is touched elsewhere.
#pragma once

#include <future>
#include <map>
#include <string>
#include <type_traits>
#include <utility>

#include "plan.hpp"
#include "this_thread.hpp"
#include "ui_loop.hpp"

namespace cached_fetch {

/// What has been told of a key.
struct news {
  int results = 0;
  int failures = 0;
  outcome last = {};
};

class user_interface {
 public:
  user_interface() : thread_number_(ask([] { return cached_fetch::thread_number(); })) {}

  ui_loop& loop() { return loop_; }

  void on_result(const std::string& key, const std::string& value) {
    news& its = of(key);
    ++its.results;
    its.last = {outcome::kind::value, value};
  }
  void on_failure(const std::string& key, const outcome& what) {
    news& its = of(key);
    ++its.failures;
    its.last = what;
  }

  /// Calls `f` on the loop's thread and waits, as a program does that knows no fibers.
  template <typename F>
  auto ask(F f) -> std::invoke_result_t<F&> {
    std::packaged_task<std::invoke_result_t<F&>()> task(std::move(f));
    auto answer = task.get_future();
    loop_.post([&task] { task(); });
    return answer.get();
  }

  /// Returns: all that has been told.
  std::map<std::string, news> told() {
    return ask([this] { return told_; });
  }
  /// To be called when the loop is closed.
  const std::map<std::string, news>& told_in_the_end() const { return told_; }
  int touched_elsewhere() const { return elsewhere_; }

 private:
  news& of(const std::string& key) {
    if (cached_fetch::thread_number() != thread_number_) ++elsewhere_;
    return told_[key];
  }

  std::map<std::string, news> told_;
  std::atomic<int> elsewhere_{0};
  ui_loop loop_;
  const int thread_number_;
};

}  // namespace cached_fetch
