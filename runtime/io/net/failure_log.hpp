// SPDX-License-Identifier: MIT
// What serve() says of connections that have failed, or could not be accepted.
#pragma once

#include <cxxabi.h>

#include <cstdlib>
#include <exception>
#include <map>
#include <new>
#include <string>
#include <system_error>
#include <typeindex>

#include "base/printable.hpp"
#include "core/thread_state.hpp"
#include "unhandled/notice.hpp"

namespace motet { inline namespace MOTET_ABI { namespace net {

/// Reports the first failure of each kind, counts the others, and reports the counts at the end.
class failure_log {
 public:
  failure_log() = default;
  failure_log(const failure_log&) = delete;
  failure_log& operator=(const failure_log&) = delete;
  ~failure_log() {
    without_memory_silent([&] {
      for (const auto& [kind, count] : counts_) {
        if (count > 1) report("connections that failed as " + name_of(kind), count);
      }
    });
  }

  void operator()(const std::exception_ptr& error) {
    without_memory_silent([&] { record(error); });
  }
  void tell_exhaustion(const std::error_code& error) {
    without_memory_silent([&] {
      report("connections wait to be accepted, and are tried again: " + error.message(), 1);
    });
  }

 private:
  /// The log must not end the server: if memory is short, it writes nothing.
  template <typename F>
  static void without_memory_silent(F f) {
    try {
      f();
    } catch (const std::bad_alloc&) {
    }
  }

  void record(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& e) {
      if (++counts_[typeid(e)] == 1)
        report("a connection failed: " + detail::printable{e.what()}.string(), 1);
    } catch (...) {
      const std::type_info* kind = abi::__cxa_current_exception_type();
      if (++counts_[*kind] == 1) report("a connection failed: " + name_of(*kind), 1);
    }
  }

  static std::string name_of(std::type_index kind) {
    int status = 0;
    char* readable = abi::__cxa_demangle(kind.name(), nullptr, nullptr, &status);
    std::string name = readable == nullptr ? kind.name() : readable;
    std::free(readable);
    return name;
  }

  static void report(const std::string& text, std::size_t count) {
    detail::notice(detail::here().settings(),
                   count == 1 ? text : text + ": " + std::to_string(count) + " in all");
  }

  std::map<std::type_index, std::size_t> counts_;
};

}}}  // namespace motet::MOTET_ABI::net
