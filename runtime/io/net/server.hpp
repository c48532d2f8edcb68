// SPDX-License-Identifier: MIT
// serve(), for listeners of every kind.
#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <motet/base/call_site.hpp>
#include <motet/base/errors.hpp>
#include <motet/cancellation/cancel.hpp>
#include <motet/fibers/group.hpp>
#include <motet/io/fd.hpp>
#include <motet/net/endpoint.hpp>
#include <motet/net/serve_options.hpp>
#include <motet/sync/semaphore.hpp>
#include <motet/sync/time.hpp>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "cancellation/child_failures.hpp"
#include "core/thread_state.hpp"
#include "fibers/family.hpp"
#include "io/net/failure_log.hpp"
#include "unhandled/unhandled.hpp"

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

/// Returns: a stream on `descriptor`; none, with the error set, if memory lacks.
template <typename Stream>
Stream stream_on(int descriptor, std::error_code& error) noexcept {
  fd socket(descriptor);
  try {
    return Stream(std::move(socket));
  } catch (const std::bad_alloc&) {
    error = std::make_error_code(std::errc::not_enough_memory);
  }
  return {};
}

/// Connections that are accepted in one round of the thread.
inline constexpr int most_at_once = 64;
inline constexpr std::chrono::milliseconds shortest_pause{1};
inline constexpr std::chrono::milliseconds longest_pause{1000};

/// The address of a peer, as accept4(2) tells it.
struct peer_address {
  sockaddr_storage name{};
  socklen_t length = sizeof name;

  sockaddr* get() noexcept { return reinterpret_cast<sockaddr*>(&name); }
  /// Returns: `prefix`, followed by the address if the peer has one; most Unix sockets have none.
  std::string behind(const std::string& prefix) {
    const bool local = name.ss_family == AF_UNIX && length > sizeof(sa_family_t);
    if (!local && name.ss_family != AF_INET && name.ss_family != AF_INET6) return prefix;
    return prefix + ' ' + endpoint(get(), length).to_string();
  }
};

/// Calls a handler on a fiber for each connection, until it drains or is ended by an exception.
template <typename Stream>
class server {
 public:
  /// The options and the handler outlive the server.
  server(const serve_options& options, const std::function<void(Stream)>& handler, call_site site)
      : options_(options), handler_(handler), site_(site) {
    constexpr auto maximum = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());
    if (options.limit > 0)
      permits_.emplace(static_cast<std::ptrdiff_t>(std::min(options.limit, maximum)));
  }
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  /// `accept(peer)` waits for a connection; `accept_ready(peer)` does not wait: it
  /// returns -EAGAIN. They return a descriptor, or minus an errno value.
  /// Returns: how many connections were cut.
  template <typename Accept, typename AcceptReady, typename Close>
  std::size_t run(Accept accept, AcceptReady accept_ready, Close close) {
    move_on_when_stopped(options_.drain, [&] {
      for (;;) {
        accept_next(accept, connection_permit(permits_));
        // While other fibers run, connections gather; a handler may want to know how many.
        if (detail::here().any_runnable()) accept_pending(accept_ready, most_at_once);
      }
    });
    accept_pending(accept_ready, SOMAXCONN);
    close();
    if (move_on_after(options_.grace, [&] { connections_.await_all(); })) return 0;
    const std::size_t count = connections_.size();
    connections_.cancel("its server has drained", {});
    return count;
  }

 private:
  /// A connection's slot among those that may be open.
  class connection_permit {
   public:
    explicit connection_permit(std::optional<semaphore>& permits) {
      if (permits.has_value()) permits->acquire();
      permits_ = permits.has_value() ? &*permits : nullptr;
    }
    connection_permit(std::optional<semaphore>& permits, std::adopt_lock_t) noexcept
        : permits_(permits.has_value() ? &*permits : nullptr) {}
    connection_permit(connection_permit&& other) noexcept
        : permits_(std::exchange(other.permits_, nullptr)) {}
    connection_permit& operator=(connection_permit&&) = delete;
    ~connection_permit() {
      if (permits_ != nullptr) permits_->release();
    }

   private:
    semaphore* permits_ = nullptr;
  };

  /// Accepts while there are permits, but at most `limit` connections, or clients could delay the
  /// end.
  template <typename AcceptReady>
  void accept_pending(AcceptReady& accept_ready, int limit) {
    for (int remaining = limit; remaining > 0; --remaining) {
      if (permits_.has_value() && !permits_->try_acquire()) return;
      const std::error_code error =
          accept_one(accept_ready, connection_permit(permits_, std::adopt_lock));
      if (error && !concerns_one_connection(error.value())) return;
    }
  }

  /// Accepts one connection, or waits a while.
  template <typename Accept>
  void accept_next(Accept& accept, connection_permit permit) {
    const std::error_code error = accept_one(accept, std::move(permit));
    if (!error) return;
    detail::here().deliver();
    handle_accept_error(error);
  }

  /// A connection that was accepted is handled, whatever is pending for this fiber.
  template <typename Accept>
  std::error_code accept_one(Accept& accept, connection_permit permit) {
    peer_address address;
    const std::int32_t descriptor = accept(address);
    std::error_code error(std::max(-descriptor, 0), std::system_category());
    if (error) return error;
    Stream peer = stream_on<Stream>(descriptor, error);
    return error ? error : start(std::move(permit), std::move(peer), address);
  }

  std::error_code start(connection_permit permit, Stream peer, peer_address& address) {
    try {
      connections_.spin(
          {.name = address.behind(options_.name)},
          [this, permit = std::move(permit), peer = std::move(peer)]() mutable {
            serve_one(std::move(peer));
          },
          site_);
    } catch (const std::bad_alloc&) {
      report(std::current_exception());
      return std::make_error_code(std::errc::not_enough_memory);
    }
    pause_ = shortest_pause;
    return {};
  }

  void serve_one(Stream peer) {
    std::exception_ptr cancellation;
    try {
      handler_(std::move(peer));
    } catch (const cancelled&) {
      cancellation = std::current_exception();
    } catch (...) {
      report(std::current_exception());
    }
    end_remaining_children();
    if (cancellation != nullptr) std::rethrow_exception(cancellation);
  }

  /// The children that a handler has not awaited may fail, too.
  void end_remaining_children() {
    if (!detail::end_own_children("the handler of its connection is over")) return;
    while (const std::exception_ptr error = detail::take_error_of_child(detail::here().running())) {
      report(error);
    }
  }

  void report(const std::exception_ptr& error) {
    try {
      options_.on_error ? options_.on_error(error) : log_(error);
    } catch (const cancelled&) {
      throw;
    } catch (...) {
      detail::report_unhandled(detail::here().settings(), std::current_exception());
    }
  }

  /// Throws: `error`, unless the next connection may be fine, perhaps after a pause.
  void handle_accept_error(const std::error_code& error) {
    if (concerns_one_connection(error.value())) return;
    if (!means_exhaustion(error.value())) throw std::system_error(error, "accept");
    if (!std::exchange(exhaustion_is_told_, true)) log_.tell_exhaustion(error);
    sleep_for(pause_);
    pause_ = std::min(pause_ * 2, longest_pause);
  }

  const serve_options& options_;
  const std::function<void(Stream)>& handler_;
  const call_site site_;
  std::optional<semaphore> permits_;  // none: no limit
  failure_log log_;
  std::chrono::milliseconds pause_ = shortest_pause;
  bool exhaustion_is_told_ = false;
  group connections_;  // declared last: its fibers use all members above
};

}}}  // namespace motet::MOTET_ABI::net
