// SPDX-License-Identifier: MIT
// The exceptions of Boost.Fiber.
#pragma once

#include <future>
#include <motet/detail/base/abi.hpp>
#include <system_error>

namespace motet { inline namespace MOTET_ABI { namespace compat { namespace boost_fiber {

class fiber_error : public std::system_error {
 public:
  /// Not a switchpoint.
  using std::system_error::system_error;
};

class lock_error : public fiber_error {
 public:
  /// Not a switchpoint.
  using fiber_error::fiber_error;
};

using future_errc = std::future_errc;
using std::future_category;

class future_error : public fiber_error {
 public:
  /// Not a switchpoint.
  explicit future_error(std::error_code code) : fiber_error(code) {}
};

class future_uninitialized : public future_error {
 public:
  /// Not a switchpoint.
  future_uninitialized() : future_error(make_error_code(future_errc::no_state)) {}
};

class future_already_retrieved : public future_error {
 public:
  /// Not a switchpoint.
  future_already_retrieved()
      : future_error(make_error_code(future_errc::future_already_retrieved)) {}
};

class broken_promise : public future_error {
 public:
  /// Not a switchpoint.
  broken_promise() : future_error(make_error_code(future_errc::broken_promise)) {}
};

class promise_already_satisfied : public future_error {
 public:
  /// Not a switchpoint.
  promise_already_satisfied()
      : future_error(make_error_code(future_errc::promise_already_satisfied)) {}
};

class promise_uninitialized : public future_error {
 public:
  /// Not a switchpoint.
  promise_uninitialized() : future_error(make_error_code(future_errc::no_state)) {}
};

class packaged_task_uninitialized : public future_error {
 public:
  /// Not a switchpoint.
  packaged_task_uninitialized() : future_error(make_error_code(future_errc::no_state)) {}
};

}}}}  // namespace motet::MOTET_ABI::compat::boost_fiber
