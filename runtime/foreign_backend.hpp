// SPDX-License-Identifier: MIT
// On a thread that is not motet's, where a fiber is for as long as one function of it takes:
// nothing is done by the kernel for it, and what cannot but wait ends with a wake.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <motet/backend.hpp>

namespace motet::inline MOTET_ABI::detail {

class foreign_backend final : public backend {
 public:
  std::string_view name() const noexcept override { return "none"; }
  time_point now() const noexcept override { return std::chrono::steady_clock::now(); }
  /// It stays until it is cancelled.
  bool submit(operation&) noexcept override { return false; }
  void cancel(operation& op) noexcept override {
    op.result = -ECANCELED;
    over_.push(op);
  }
  void poll(time_point deadline, completions& done) override {
    if (over_.empty()) await_wake(deadline);
    done.append(over_);
  }
  void listen(int wake_descriptor) override { wake_descriptor_ = wake_descriptor; }

 private:
  void await_wake(time_point deadline) const noexcept {
    using std::chrono::milliseconds;
    const auto left = std::max(deadline, now()) - now();
    const auto whole = std::chrono::ceil<milliseconds>(std::min<clock::duration>(left, longest));
    pollfd woken{wake_descriptor_, POLLIN, 0};
    if (::poll(&woken, 1, static_cast<int>(whole.count())) != 1) return;
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t size = ::read(wake_descriptor_, &count, sizeof count);
  }

  static constexpr std::chrono::seconds longest{1};
  completions over_;
  int wake_descriptor_ = -1;
};

}  // namespace motet::inline MOTET_ABI::detail
