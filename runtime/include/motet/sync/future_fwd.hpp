// SPDX-License-Identifier: MIT
// Declares futures and promises, for headers that only name them.
#pragma once

#include <motet/detail/base/abi.hpp>

namespace motet { inline namespace MOTET_ABI {

template <typename T>
class future;
template <typename T>
class promise;

namespace detail {

/// Gets the result of a ready future, without a switchpoint.
struct ready_future {
  template <typename T>
  static decltype(auto) read(const future<T>& source) {
    return source.read_ready();
  }
  template <typename T>
  static T take(const future<T>& source) {
    return source.take_ready();
  }
};

}  // namespace detail

}}  // namespace motet::MOTET_ABI
