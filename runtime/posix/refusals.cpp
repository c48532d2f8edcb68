// SPDX-License-Identifier: MIT
// See posix/refusals.hpp.
#include "posix/refusals.hpp"

#include <atomic>
#include <cerrno>
#include <new>
#include <string>

#include "core/store/fiber_store.hpp"
#include "posix/fiber_part.hpp"
#include "unhandled/notice.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

constexpr unsigned reported_count = 100;
constexpr unsigned last_count = 10'000;

/// Whether any fiber has been refused a call; before, none looks for its count.
std::atomic<bool> counted{false};

void report(thread_state& home) {
  const control_block& fiber = home.running();
  notice(home.settings(), "fiber " + label_of(fiber) + ", spun at " + fiber.site.file + ":" +
                              std::to_string(fiber.site.line) + ", has made " +
                              std::to_string(reported_count) +
                              " calls in a row that its pending interruption ended: its code "
                              "retries them; after " +
                              std::to_string(last_count) + " they fail with EBADF");
}

}  // namespace

int count_refusal(thread_state& home, int error) noexcept {
  counted.store(true, std::memory_order_relaxed);
  try {
    unsigned& count = fiber_part::get().refusals;
    if (count >= last_count) return EBADF;
    if (++count == reported_count) report(home);
  } catch (const std::bad_alloc&) {
    // Counted the next time.
  }
  return error;
}

void forget_refusals() noexcept {
  if (!counted.load(std::memory_order_relaxed)) return;
  if (fiber_part* const part = fiber_part::find()) part->refusals = 0;
}

}}}  // namespace motet::MOTET_ABI::detail
