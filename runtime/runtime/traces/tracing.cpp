// SPDX-License-Identifier: MIT
// See runtime/traces/tracing.hpp.
#include "runtime/traces/tracing.hpp"

#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <motet/observe/trace.hpp>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/printable.hpp"
#include "core/thread_state.hpp"
#include "unhandled/notice.hpp"

namespace motet { inline namespace MOTET_ABI {

namespace detail {

namespace {

std::string with_number(std::string path) {
  const std::string number = std::to_string(::getpid());
  for (std::size_t at = path.find("%p"); at != std::string::npos; at = path.find("%p", at)) {
    path.replace(at, 2, number);
    at += number.size();
  }
  return path;
}

/// Returns: the process's trace file; creates it if there was none.
trace_file& file_at(const std::string& path, std::size_t records) {
  const std::lock_guard guard(trace_file::beginning());
  trace_file* made = trace_file::current();
  return made == nullptr ? trace_file::begin(path, records) : *made;
}

std::unique_ptr<recorder> recorder_to(const std::string& path, const options& chosen) {
  return std::make_unique<recorder>(file_at(path, chosen.trace.records));
}

}  // namespace

void check_trace(const trace_options& chosen) {
  const std::size_t records = chosen.records;
  const bool power_of_two = (records & (records - 1)) == 0;
  if (!power_of_two || records < 1'024 || records > 16'777'216)
    throw std::invalid_argument(
        "options.trace.records must be a power of two from 1,024 to 16,777,216");
}

std::unique_ptr<recorder> recorder_for(const options& chosen) {
  if (!chosen.trace.file.empty()) {
    const std::string path = with_number(chosen.trace.file);
    auto made = recorder_to(path, chosen);
    if (trace_file::current()->path() == path) return made;
    throw std::invalid_argument("options.trace.file: this process records to " +
                                trace_file::current()->path());
  }
  const char* wanted = std::getenv("MOTET_TRACE");
  if (wanted == nullptr || *wanted == '\0') return nullptr;
  try {
    return recorder_to(with_number(wanted), chosen);
  } catch (const std::exception& why) {
    notice(chosen, "MOTET_TRACE has no effect: " + printable{why.what()}.string());
    return nullptr;
  }
}

void record(thread_state& thread, std::unique_ptr<recorder> by) noexcept {
  thread.recording = std::move(by);
  thread.recording->begin(thread.main_fiber());
  thread.recorded(true);
}

}  // namespace detail

bool save_trace(const std::string& file) {
  detail::trace_file* own = detail::trace_file::current();
  if (own == nullptr) return false;
  own->save(file);
  return true;
}

}}  // namespace motet::MOTET_ABI
