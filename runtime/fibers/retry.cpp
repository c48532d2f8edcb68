// SPDX-License-Identifier: MIT
// See motet/fibers/retry.hpp.
#include <motet/detail/core/switchpoint.hpp>
#include <motet/fibers/fiber.hpp>
#include <motet/fibers/retry.hpp>
#include <motet/sync/time.hpp>
#include <random>
#include <stdexcept>

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

bool may_help(const retry_schedule& schedule, const std::exception_ptr& failure) {
  if (schedule.only_if) return schedule.only_if(failure);
  try {
    std::rethrow_exception(failure);
  } catch (const std::logic_error&) {
    return false;
  } catch (...) {
    return true;
  }
}

/// Fibers that fail at the same moment have different delays.
clock::duration delay_after(const retry_schedule& schedule, std::size_t attempts) {
  clock::duration full = std::min(schedule.delay, schedule.longest_delay);
  for (; attempts > 1 && full < schedule.longest_delay; --attempts) {
    full = full > schedule.longest_delay / 2 ? schedule.longest_delay : full * 2;
    if (full == clock::duration::zero()) break;
  }
  const auto seed = static_cast<std::uint64_t>(clock::now().time_since_epoch().count());
  std::minstd_rand dice(static_cast<unsigned>(seed + 7919 * current().id()));
  const double reduction = std::uniform_real_distribution<double>(0, schedule.jitter)(dice);
  return full - std::chrono::duration_cast<clock::duration>(full * reduction);
}

}  // namespace

void enter_retry(const retry_schedule& schedule) {
  const auto no_delay = clock::duration::zero();
  if (schedule.attempts == 0 || schedule.delay < no_delay || schedule.longest_delay < no_delay ||
      !(schedule.jitter >= 0) || schedule.jitter > 1) {
    throw std::invalid_argument(
        "retry() needs an attempt, delays that are not negative, and a jitter in [0, 1]");
  }
  here_core().deliver();
}

void await_next_attempt(const retry_schedule& schedule, std::size_t attempts) {
  if (attempts >= schedule.attempts || !may_help(schedule, std::current_exception())) throw;
  sleep_for(delay_after(schedule, attempts));
}

}}}  // namespace motet::MOTET_ABI::detail
