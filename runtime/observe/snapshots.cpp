// SPDX-License-Identifier: MIT
// See observe/snapshots.hpp.
#include "observe/snapshots.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <string>

#include "observe/recording/trace_file.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

constexpr unsigned most_of_a_cause = 4;
constexpr std::array<const char*, 4> names = {"signal", "deadline", "stall", "failure"};

/// Of the snapshots for one cause.
struct so_far {
  std::atomic<unsigned> count{0};
  std::atomic<std::int64_t> last_second{-1};
};
constinit std::array<so_far, names.size()> of_causes{};

/// Returns: the number of the snapshot to take; 0 for none.
unsigned number_for(snapshot_cause cause) noexcept {
  using namespace std::chrono;
  so_far& counter = of_causes[static_cast<std::size_t>(cause)];
  if (cause != snapshot_cause::signal && counter.count >= most_of_a_cause) return 0;
  const auto time = duration_cast<seconds>(steady_clock::now().time_since_epoch()).count();
  if (counter.last_second.exchange(time) == time) return 0;
  return ++counter.count;
}

void save(trace_file& file, snapshot_cause cause, unsigned number) noexcept {
  try {
    file.save(file.path() + '.' + names[static_cast<std::size_t>(cause)] + '-' +
              std::to_string(number));
  } catch (const std::exception&) {
    // The disk is full, or memory is short: the recording itself continues.
  }
}

}  // namespace

void copy_trace(snapshot_cause cause) noexcept {
  trace_file* file = trace_file::current();
  if (file == nullptr) return;
  if (const unsigned number = number_for(cause); number != 0) save(*file, cause, number);
}

}}}  // namespace motet::MOTET_ABI::detail
