// SPDX-License-Identifier: MIT
// The backend of a thread that has no runtime of its own, for the visit of a fiber. It performs no
// operations: poll() sleeps 1 ms at a time, because such waits are rare.
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <motet/runtime/backend.hpp>

#include "base/system_calls.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

class foreign_backend final : public backend {
 public:
  std::string_view name() const noexcept override { return "none"; }
  time_point now() const noexcept override { return std::chrono::steady_clock::now(); }
  /// It stays until it is cancelled.
  bool submit(operation&) noexcept override { return false; }
  void cancel(operation& op) noexcept override {
    op.result = -ECANCELED;
    results_.push(op);
  }
  void poll(time_point deadline, completions& results) override {
    const time_point present = now();
    if (results_.empty() && deadline > present)
      sys::sleep_for(std::min(deadline, present + nap) - present);
    results.append(results_);
  }
  void listen(int) override {}

 private:
  static constexpr std::chrono::milliseconds nap{1};
  completions results_;
};

}}}  // namespace motet::MOTET_ABI::detail
