// SPDX-License-Identifier: MIT
// See http/server/lateness.hpp.
#include "http/server/lateness.hpp"

#include <algorithm>
#include <motet/fiber.hpp>

namespace motet { inline namespace MOTET_ABI { namespace http {

namespace {

using namespace std::chrono_literals;

constexpr clock::duration between_looks = 1ms;
constexpr clock::duration interval = 100ms;

}  // namespace

[[gnu::noinline]] lateness& lateness::here() noexcept {
  static thread_local lateness of_thread;
  return of_thread;
}

bool lateness::is_over(clock::duration most) {
  const clock::time_point now = clock::now();
  if (!measures_ && now - measured_at_ >= between_looks) measure();
  // A fiber that has stood behind the others so long is not through yet.
  const clock::duration delay = measures_ ? std::max(last_, now - measured_at_) : last_;
  return delay > most && least_before_ > most;
}

/// Stands behind all fibers that are runnable now.
void lateness::measure() {
  struct ending {
    lateness& of;
    ~ending() { of.measures_ = false; }
  };
  measured_at_ = clock::now();
  measures_ = true;
  const ending whatever_happens{*this};
  snooze();
  const clock::time_point now = clock::now();
  note(now, now - measured_at_);
}

void lateness::note(clock::time_point now, clock::duration delay) noexcept {
  last_ = delay;
  if (now >= interval_ends_) {
    // A pause without work was no time of overload.
    const bool is_next = now - interval_ends_ < interval;
    least_before_ = is_next ? least_ : clock::duration(0);
    least_ = delay;
    interval_ends_ = now + interval;
  }
  least_ = std::min(least_, delay);
}

}}}  // namespace motet::MOTET_ABI::http
