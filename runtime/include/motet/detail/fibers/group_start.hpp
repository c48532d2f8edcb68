// SPDX-License-Identifier: MIT
// The body of a fiber that group::start() waits for.
#pragma once

#include <exception>
#include <motet/base/errors.hpp>
#include <motet/sync/future_fwd.hpp>
#include <type_traits>
#include <utility>

namespace motet { inline namespace MOTET_ABI {

class fiber_ref;

namespace detail {

std::exception_ptr unready_end() noexcept;

/// The body of a fiber that start() waits for; it may keep the promise. An exception that leaves it
/// before the promise is set is thrown by start().
template <typename T, typename F>
struct starting {
  void operator()() {
    promise<T> readiness = std::move(ready);  // dropped when this returns
    try {
      body(readiness);
      if (readiness.state_ != nullptr) readiness.set_exception(unready_end());
    } catch (const cancelled&) {
      throw;
    } catch (...) {
      if (readiness.state_ == nullptr || !readiness.set_exception(std::current_exception())) throw;
    }
  }

  F body;
  promise<T> ready;
};

/// Called in an exception handler.
/// Throws: fiber_cancelled if the promise was broken because the fiber was cancelled; else the
///         handled exception.
[[noreturn]] void rethrow_for_start_of(const fiber_ref& child);

}  // namespace detail

}}  // namespace motet::MOTET_ABI
