// SPDX-License-Identifier: MIT
// The user interface of a check: it counts what the user sees of each key. Only the loop's thread
// touches it, so it needs no lock, and it notes when another thread does.
#pragma once

#include <atomic>
#include <future>
#include <map>
#include <string>
#include <type_traits>
#include <utility>

#include "errand.hpp"
#include "this_thread.hpp"
#include "ui_loop.hpp"

namespace fetch_test {

struct news {
  int results = 0;
  int failures = 0;
  outcome last = {};
};

class observed_interface final : public cached_fetch::user_interface {
 public:
  observed_interface() : thread_number_(ask([] { return fetch_test::thread_number(); })) {}

  ui_loop& loop() { return loop_; }

  void post(std::function<void()> f) override { loop_.post(std::move(f)); }

  void show(const std::string& key, const outcome& result) override {
    const stretch run;
    const bool is_value = result.end == outcome::kind::value;
    (*current_errand)->log.add("ui", key, is_value ? std::string() : describe(result));
    if (fetch_test::thread_number() != thread_number_) ++strangers_;
    news& entry = news_[key];
    ++(is_value ? entry.results : entry.failures);
    entry.last = result;
  }

  /// Calls `f` on the loop's thread and blocks until its end, as a program without fibers does.
  template <typename F>
  auto ask(F f) -> std::invoke_result_t<F&> {
    std::packaged_task<std::invoke_result_t<F&>()> task(std::move(f));
    auto answer = task.get_future();
    loop_.post([&task] { task(); });
    return answer.get();
  }

  std::map<std::string, news> present_news() {
    return ask([this] { return news_; });
  }
  /// To be called when the loop is closed.
  const std::map<std::string, news>& final_news() const { return news_; }
  /// Returns: how often another thread has touched it.
  int strangers() const { return strangers_; }

 private:
  std::map<std::string, news> news_;
  std::atomic<int> strangers_{0};
  ui_loop loop_;
  const int thread_number_;
};

}  // namespace fetch_test
