// SPDX-License-Identifier: MIT
// The loop of serve(), for listeners of every kind.
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <motet/detail/life/group.hpp>
#include <motet/errors.hpp>
#include <motet/fd.hpp>
#include <motet/time.hpp>
#include <new>
#include <system_error>
#include <utility>

#include "failures/unhandled.hpp"
#include "heart/thread_state.hpp"
#include "io/net/failure_log.hpp"

namespace motet { inline namespace MOTET_ABI { namespace net {

/// Whether `error` means that one connection was gone before it was accepted; the next one may be
/// fine. Source: accept(2), Linux.
inline bool concerns_one_connection(int error) {
  switch (error) {
    case ECONNABORTED:
    case EINTR:
    case EPERM:
    case EPROTO:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH:
      return true;
    default:
      return false;
  }
}

inline bool means_exhaustion(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

/// Returns: a stream on the descriptor `accepted`; none, with the error set, if memory lacks.
template <typename Stream>
Stream stream_on(int accepted, std::error_code& error) noexcept {
  fd socket(accepted);
  try {
    return Stream(std::move(socket));
  } catch (const std::bad_alloc&) {
    error = std::make_error_code(std::errc::not_enough_memory);
  }
  return {};
}

inline constexpr std::chrono::milliseconds shortest_pause{1};
inline constexpr std::chrono::milliseconds longest_pause{1000};

/// Calls `handler` on a fiber for each connection that `accept` returns: a descriptor, or minus an
/// errno value.
template <typename Stream, typename Accept>
[[noreturn]] void serve_loop(Accept accept, const std::function<void(Stream)>& handler,
                             std::function<void(std::exception_ptr)> on_error) {
  failure_log log;
  if (!on_error) on_error = [&log](const std::exception_ptr& error) { log(error); };
  const auto report = [&](const std::exception_ptr& error) {
    try {
      on_error(error);
    } catch (const cancelled&) {
      throw;
    } catch (...) {
      detail::report_unhandled(detail::here().settings(), std::current_exception());
    }
  };
  const auto serve_one = [&](Stream peer) {
    try {
      handler(std::move(peer));
    } catch (const cancelled&) {
      throw;
    } catch (...) {
      report(std::current_exception());
    }
  };
  group connections;  // declared last: its fibers use all of the above until they are over
  auto pause = shortest_pause;
  for (;;) {
    const std::int32_t accepted = accept();
    std::error_code error(std::max(-accepted, 0), std::system_category());
    Stream peer = error ? Stream() : stream_on<Stream>(accepted, error);
    detail::here().deliver();
    if (!error) {
      pause = shortest_pause;
      try {
        connections.spin({.name = "connection"}, [&serve_one, peer = std::move(peer)]() mutable {
          serve_one(std::move(peer));
        });
        continue;
      } catch (const std::bad_alloc&) {
        report(std::current_exception());
        error = std::make_error_code(std::errc::not_enough_memory);
      }
    }
    if (concerns_one_connection(error.value())) continue;
    if (!means_exhaustion(error.value())) throw std::system_error(error, "accept");
    sleep_for(pause);
    pause = std::min(pause * 2, longest_pause);
  }
}

}}}  // namespace motet::MOTET_ABI::net
