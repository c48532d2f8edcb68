// SPDX-License-Identifier: MIT
// A backend as a program may bring its own: over poll(2), with nothing but
// motet/runtime/backend.hpp.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <motet/runtime/backend.hpp>
#include <vector>

namespace testing {

class poll_backend : public motet::backend {
 public:
  std::string_view name() const noexcept override { return "poll"; }
  time_point now() const noexcept override { return std::chrono::steady_clock::now(); }
  void listen(int wake_descriptor) override { wake_ = wake_descriptor; }

  bool submit(motet::operation& op) noexcept override {
    if (attempt(op)) return true;
    operations_.push_back(&op);
    return false;
  }

  void cancel(motet::operation& op) noexcept override {
    if (std::erase(operations_, &op) == 0) return;
    op.result = -ECANCELED;
    results_.push(op);
  }

  void poll(time_point deadline, motet::completions& completed) override {
    try_all();
    const bool waits = results_.empty() && !woken() && deadline != time_point::min();
    if (waits) {
      wait_until(deadline);
      woken();
      try_all();
    }
    completed.append(results_);
  }

 private:
  void try_all() {
    std::erase_if(operations_, [this](motet::operation* op) {
      const bool ended = attempt(*op);
      if (ended) results_.push(*op);
      return ended;
    });
  }

  bool woken() const {
    std::uint64_t count = 0;
    pollfd look{wake_, POLLIN, 0};
    return ::poll(&look, 1, 0) > 0 && ::read(wake_, &count, sizeof count) > 0;
  }

  void wait_until(time_point deadline) {
    std::vector<pollfd> looks{{wake_, POLLIN, 0}};
    for (const motet::operation* op : operations_) looks.push_back({op->fd, readiness_of(*op), 0});
    const auto remaining = std::max(deadline - now(), std::chrono::nanoseconds(0));
    const auto whole = std::chrono::floor<std::chrono::seconds>(remaining);
    const timespec limit{whole.count(), (remaining - whole).count()};
    ::ppoll(looks.data(), looks.size(), deadline == time_point::max() ? nullptr : &limit, nullptr);
  }

  int wake_ = -1;
  std::vector<motet::operation*> operations_;
  motet::completions results_;
};

}  // namespace testing
