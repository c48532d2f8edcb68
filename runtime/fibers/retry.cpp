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

bool may_help(const retry_schedule& how, const std::exception_ptr& failure) {
  if (how.only_if) return how.only_if(failure);
  try {
    std::rethrow_exception(failure);
  } catch (const std::logic_error&) {
    return false;
  } catch (...) {
    return true;
  }
}

/// Fibers that fail at the same moment have different delays.
clock::duration delay_after(const retry_schedule& how, std::size_t made) {
  clock::duration full = std::min(how.delay, how.longest_delay);
  for (; made > 1 && full < how.longest_delay; --made) {
    full = full > how.longest_delay / 2 ? how.longest_delay : full * 2;
    if (full == clock::duration::zero()) break;
  }
  const auto now = static_cast<std::uint64_t>(clock::now().time_since_epoch().count());
  std::minstd_rand dice(static_cast<unsigned>(now + 7919 * current().id()));
  const double left_out = std::uniform_real_distribution<double>(0, how.jitter)(dice);
  return full - std::chrono::duration_cast<clock::duration>(full * left_out);
}

}  // namespace

void enter_retry(const retry_schedule& how) {
  const auto none = clock::duration::zero();
  if (how.attempts == 0 || how.delay < none || how.longest_delay < none || !(how.jitter >= 0) ||
      how.jitter > 1) {
    throw std::invalid_argument(
        "retry() needs an attempt, delays that are not negative, and a jitter in [0, 1]");
  }
  here_core().deliver();
}

void await_next_attempt(const retry_schedule& how, std::size_t made) {
  if (made >= how.attempts || !may_help(how, std::current_exception())) throw;
  sleep_for(delay_after(how, made));
}

}}}  // namespace motet::MOTET_ABI::detail
