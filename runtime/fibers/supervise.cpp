// SPDX-License-Identifier: MIT
// The checks of supervise()'s arguments, and the exception too_many_restarts.
#include <motet/fibers/supervise.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "fibers/supervisor.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace {

std::string describe(const std::string& child, std::size_t limit, const std::exception_ptr& cause) {
  std::string text =
      "child " + child + " has ended once more after " + std::to_string(limit) + " restarts";
  if (cause == nullptr) return text;
  try {
    std::rethrow_exception(cause);
  } catch (const std::exception& error) {
    text += std::string(": ") + error.what();
  } catch (...) {
  }
  return text;
}

void check(const supervise_options& settings) {
  const auto zero = clock::duration::zero();
  if (settings.window <= zero)
    throw std::invalid_argument("supervise(): window must be greater than 0");
  if (settings.delay < zero || settings.longest_delay < settings.delay) {
    throw std::invalid_argument("supervise(): delay must be from 0 to longest_delay");
  }
  if (!(settings.jitter >= 0 && settings.jitter <= 1)) {
    throw std::invalid_argument("supervise(): jitter must be from 0 to 1");
  }
}

void check(const std::vector<child_spec>& children) {
  if (children.empty()) throw std::invalid_argument("supervise(): no children were given");
  for (const child_spec& spec : children) {
    if (!spec.make) throw std::invalid_argument("supervise(): a child has no function");
  }
}

}  // namespace

too_many_restarts::too_many_restarts(const std::string& child, std::size_t limit,
                                     std::exception_ptr cause)
    : std::runtime_error(describe(child, limit, cause)), child_(child), cause_(std::move(cause)) {}

void supervise(const supervise_options& settings, std::vector<child_spec> children) {
  check(settings);
  check(children);
  detail::supervisor(settings, std::move(children)).run();
}

}}  // namespace motet::MOTET_ABI
