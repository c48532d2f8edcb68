// SPDX-License-Identifier: MIT
// See unhandled.hpp.
#include "unhandled.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace motet::inline MOTET_ABI::detail {

namespace {

/// Set when a failure reached nobody.
constinit std::atomic<bool> failed{false};

/// After every static's destructor: the last word on the exit code.
[[gnu::destructor]] void fail_if_unhandled() {
  if (!failed.load(std::memory_order_relaxed)) return;
  std::fflush(nullptr);
  std::_Exit(1);
}

}  // namespace

void tell_unhandled(const options& settings, const std::exception_ptr& error) noexcept {
  try {
    if (settings.on_unhandled) {
      settings.on_unhandled(error);
      return;
    }
    failed.store(true, std::memory_order_relaxed);
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "motet: a fiber failed and nobody was left to be told: %s\n", e.what());
  } catch (...) {
    std::fprintf(stderr, "motet: a fiber failed and nobody was left to be told\n");
  }
}

}  // namespace motet::inline MOTET_ABI::detail
