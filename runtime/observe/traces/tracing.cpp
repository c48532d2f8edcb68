// SPDX-License-Identifier: MIT
// See observe/traces/tracing.hpp.
#include "observe/traces/tracing.hpp"

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
  for (std::size_t position = path.find("%p"); position != std::string::npos;
       position = path.find("%p", position)) {
    path.replace(position, 2, number);
    position += number.size();
  }
  return path;
}

/// Returns: the process's trace file; creates it if there was none.
trace_file& file_at(const std::string& path, std::size_t records) {
  const std::lock_guard guard(trace_file::beginning());
  trace_file* file = trace_file::current();
  return file == nullptr ? trace_file::begin(path, records) : *file;
}

std::unique_ptr<recorder> recorder_to(const std::string& path, const options& settings) {
  return std::make_unique<recorder>(file_at(path, settings.trace.records));
}

}  // namespace

void check_trace(const trace_options& settings) {
  const std::size_t records = settings.records;
  const bool power_of_two = (records & (records - 1)) == 0;
  if (!power_of_two || records < 1'024 || records > 16'777'216)
    throw std::invalid_argument(
        "options.trace.records must be a power of two from 1,024 to 16,777,216");
}

std::unique_ptr<recorder> recorder_for(const options& settings) {
  if (!settings.trace.file.empty()) {
    const std::string path = with_number(settings.trace.file);
    auto result = recorder_to(path, settings);
    if (trace_file::current()->path() == path) return result;
    throw std::invalid_argument("options.trace.file: this process records to " +
                                trace_file::current()->path());
  }
  const char* variable = std::getenv("MOTET_TRACE");
  if (variable == nullptr || *variable == '\0') return nullptr;
  try {
    return recorder_to(with_number(variable), settings);
  } catch (const std::exception& error) {
    notice(settings, "MOTET_TRACE has no effect: " + printable{error.what()}.string());
    return nullptr;
  }
}

void record(thread_state& thread, std::unique_ptr<event_recorder> recording) noexcept {
  thread.recording = std::move(recording);
  thread.recording->begin(thread.main_fiber());
  thread.recorded(true);
}

}  // namespace detail

bool save_trace(const std::string& file) {
  detail::trace_file* current_file = detail::trace_file::current();
  if (current_file == nullptr) return false;
  current_file->save(file);
  return true;
}

}}  // namespace motet::MOTET_ABI
