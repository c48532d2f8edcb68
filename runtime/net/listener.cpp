// SPDX-License-Identifier: MIT
// See net/tcp_listener.hpp.
#include <cxxabi.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <motet/errors.hpp>
#include <motet/net/tcp_listener.hpp>
#include <motet/time.hpp>
#include <stdexcept>
#include <string>
#include <typeindex>

#include "../operations.hpp"
#include "../thread_state.hpp"

namespace motet::net {

namespace {

using namespace std::chrono_literals;

/// Reports the first failure of each kind, counts the others, and says at the end how many.
class failure_log {
 public:
  failure_log() = default;
  failure_log(const failure_log&) = delete;
  failure_log& operator=(const failure_log&) = delete;
  ~failure_log() {
    for (const auto& [kind, count] : counts_) {
      if (count > 1) tell("connections that failed as " + name_of(kind), count);
    }
  }

  void operator()(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& e) {
      if (++counts_[typeid(e)] == 1) tell("a connection failed: " + std::string(e.what()), 1);
    } catch (...) {
      const std::type_info* kind = abi::__cxa_current_exception_type();
      if (++counts_[*kind] == 1) tell("a connection failed: " + name_of(*kind), 1);
    }
  }

 private:
  static std::string name_of(std::type_index kind) {
    int status = 0;
    char* readable = abi::__cxa_demangle(kind.name(), nullptr, nullptr, &status);
    std::string name = readable == nullptr ? kind.name() : readable;
    std::free(readable);
    return name;
  }

  static void tell(const std::string& what, std::size_t count) {
    detail::here().notice(count == 1 ? what : what + ": " + std::to_string(count) + " in all");
  }

  std::map<std::type_index, std::size_t> counts_;
};

/// The connection was gone before it was taken; the next may be fine. Source: accept(2), Linux.
bool concerns_one_connection(int error) {
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

bool means_exhaustion(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

tcp_listener::tcp_listener(const endpoint& where, int backlog) {
  if (backlog < 1) throw std::invalid_argument("a listener's backlog must be at least 1");
  const int kind = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
  fd made(::socket(where.address()->sa_family, kind, 0));
  if (!made) detail::throw_errno(errno, "socket");
  const int on = 1;
  ::setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(made.get(), where.address(), where.length()) != 0 ||
      ::listen(made.get(), backlog) != 0) {
    throw std::system_error(errno, std::system_category(), "listen on " + where.to_string());
  }
  socket_ = std::move(made);
}

operation tcp_listener::acceptance() const noexcept {
  operation op;
  op.kind = verb::accept;
  op.fd = socket_.get();
  op.flags = SOCK_CLOEXEC;
  op.nonblocking = true;
  return op;
}

tcp_stream tcp_listener::accept() {
  operation op = acceptance();
  return tcp_stream(fd(static_cast<int>(detail::perform_throwing(op, "accept"))));
}

tcp_stream tcp_listener::accept(std::error_code& error) noexcept {
  operation op = acceptance();
  fd accepted(static_cast<int>(detail::perform_quietly(op, "accept", error)));
  if (error) {
    (void)accepted.release();
    return {};
  }
  try {
    return tcp_stream(std::move(accepted));
  } catch (const std::system_error& refused) {
    error = refused.code();
  } catch (...) {
    error = std::make_error_code(std::errc::not_enough_memory);
  }
  return {};
}

void tcp_listener::serve_each(const handler_function& handler, error_function on_error) {
  failure_log log;
  if (!on_error) on_error = [&log](const std::exception_ptr& error) { log(error); };
  const auto serve_one = [&](tcp_stream peer) {
    try {
      handler(std::move(peer));
    } catch (const cancelled&) {
      throw;
    } catch (...) {
      on_error(std::current_exception());
    }
  };
  group connections;  // last: its fibers use all of the above until they are over
  auto pause = 1ms;
  for (;;) {
    std::error_code error;
    tcp_stream peer = accept(error);
    detail::here().deliver();
    if (!error) {
      pause = 1ms;
      try {
        connections.spin({.name = "connection"}, [&serve_one, peer = std::move(peer)]() mutable {
          serve_one(std::move(peer));
        });
        continue;
      } catch (const std::bad_alloc&) {
        on_error(std::current_exception());
        error = std::make_error_code(std::errc::not_enough_memory);
      }
    }
    if (concerns_one_connection(error.value())) continue;
    if (!means_exhaustion(error.value())) throw std::system_error(error, "accept");
    sleep_for(pause);
    pause = std::min(pause * 2, 1000ms);
  }
}

endpoint tcp_listener::local_endpoint() const {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  auto* address = reinterpret_cast<sockaddr*>(&name);
  if (::getsockname(socket_.get(), address, &size) != 0) {
    detail::throw_errno(errno, "getsockname", socket_.get());
  }
  return endpoint(address, size);
}

}  // namespace motet::net
