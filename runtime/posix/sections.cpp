// SPDX-License-Identifier: MIT
// See posix/sections.hpp and motet/posix.hpp.
#include "posix/sections.hpp"

#include <atomic>
#include <cerrno>
#include <stdexcept>
#include <string>
#include <utility>

#include "posix/caller.hpp"
#include "posix/fiber_part.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace detail {

namespace {

/// Of the process: as long as there are none, no fiber looks for its own.
std::atomic<std::size_t> sections{0};

/// Returns: the running fiber's innermost section, or null.
const posix_section* section_of_running() noexcept {
  if (sections.load(std::memory_order_relaxed) == 0 || self() == nullptr) return nullptr;
  const fiber_part* const part = fiber_part::find();
  return part != nullptr ? part->section : nullptr;
}

}  // namespace

/// Outside of fibers calls are the C library's in any case.
posix_section::posix_section(int deadline_error)
    : deadline_error_(deadline_error), is_in_fiber_(self() != nullptr) {
  if (!is_in_fiber_) return;
  outer_ = std::exchange(fiber_part::get().section, this);
  ++sections;
}

posix_section::~posix_section() {
  if (!is_in_fiber_) return;
  --sections;
  fiber_part::find()->section = outer_;
}

bool in_plain_section() noexcept {
  const posix_section* section = section_of_running();
  while (section != nullptr && section->deadline_error() != 0) section = section->outer();
  return section != nullptr;
}

int deadline_error() noexcept {
  const posix_section* section = section_of_running();
  while (section != nullptr && section->deadline_error() == 0) section = section->outer();
  return section != nullptr ? section->deadline_error() : ECANCELED;
}

}  // namespace detail

namespace posix {

/// Libraries try again after EAGAIN and EINTR; ETIME is not an error of these functions.
int deadline_as::checked(int error) {
  if (error > 0 && error != EAGAIN && error != EINTR && error != ETIME) return error;
  throw std::invalid_argument("posix::deadline_as: " + std::to_string(error) +
                              " is not an errno value, or one after which libraries try again");
}

bool switches() noexcept {
  const detail::thread_state* const home = detail::self();
  return home != nullptr && !detail::calls_are_plain(*home);
}

}  // namespace posix

}}  // namespace motet::MOTET_ABI
