// SPDX-License-Identifier: MIT
// See unhandled/unhandled.hpp.
#include "unhandled/unhandled.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <motet/fibers/origin.hpp>
#include <new>
#include <string>

#include "base/printable.hpp"
#include "unhandled/snapshots.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// Set when a failure was printed because neither a fiber nor on_unhandled took it.
constinit std::atomic<bool> failed{false};

/// Runs after the destructors of all statics, to decide the exit code last.
[[gnu::destructor]] void fail_if_unhandled() {
  if (!failed.load(std::memory_order_relaxed)) return;
  std::fflush(nullptr);
  std::_Exit(1);
}

std::string label(std::uint64_t id, const std::string& name) {
  return "fiber " + (name.empty() ? std::to_string(id) : '"' + quotable(name).string() + '"');
}

/// Returns: the origin of `error`, to be printed after its text; empty if it is not known.
std::string whence(const std::exception_ptr& error) noexcept {
  try {
    const std::optional<exception_origin> source = origin(error);
    if (!source) return {};
    return " (" + label(source->fiber, source->name) + ", spun at " + source->site.file + ':' +
           std::to_string(source->site.line) +
           (source->parent == 0 ? "" : " by " + label(source->parent, source->parent_name)) + ')';
  } catch (const std::bad_alloc&) {
    return {};
  }
}

/// Returns: `text` as a part of one line; nothing without memory.
std::string in_one_line(const char* text) noexcept {
  try {
    return printable{text}.string();
  } catch (const std::bad_alloc&) {
    return {};
  }
}

void print(const char* line, const char* prefix, const char* text,
           const std::exception_ptr& error) noexcept {
  std::fprintf(stderr, "motet: %s%s%s%s\n", line, prefix, in_one_line(text).c_str(),
               whence(error).c_str());
}

}  // namespace

namespace {

/// Returns: true if there is an on_unhandled and it has returned.
bool given_to_program(const options& settings, const std::exception_ptr& error) noexcept {
  try {
    if (!settings.on_unhandled) return false;
    settings.on_unhandled(error);
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

void report_unhandled(const options& settings, const std::exception_ptr& error,
                      const char* line) noexcept {
  save_snapshot(snapshot_cause::failure);
  if (given_to_program(settings, error)) return;
  failed.store(true, std::memory_order_relaxed);
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    print(line, ": ", e.what(), error);
  } catch (...) {
    print(line, "", "", error);
  }
}

}}}  // namespace motet::MOTET_ABI::detail
