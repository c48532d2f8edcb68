// SPDX-License-Identifier: MIT
// See net/tcp_listener.hpp.
#include <cxxabi.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <motet/detail/life/group.hpp>
#include <motet/errors.hpp>
#include <motet/net/tcp_listener.hpp>
#include <motet/thread.hpp>
#include <motet/thread_pool.hpp>
#include <motet/time.hpp>
#include <new>
#include <stdexcept>
#include <string>
#include <typeindex>
#include <vector>

#include "failures/notice.hpp"
#include "failures/unhandled.hpp"
#include "heart/thread_state.hpp"
#include "io/io.hpp"
#include "io/net/socket.hpp"
#include "words/faults.hpp"

namespace motet { inline namespace MOTET_ABI { namespace net {

namespace {

using namespace std::chrono_literals;

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

 private:
  /// The log must not end the server: without memory it says nothing.
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
      if (++counts_[typeid(e)] == 1) report("a connection failed: " + std::string(e.what()), 1);
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

  static void report(const std::string& what, std::size_t count) {
    detail::notice(detail::here().settings(),
                   count == 1 ? what : what + ": " + std::to_string(count) + " in all");
  }

  std::map<std::type_index, std::size_t> counts_;
};

/// Whether `error` means that one connection was gone before it was accepted; the next one may be
/// fine. Source: accept(2), Linux.
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

[[noreturn]] void refuse_other_thread() {
  throw std::logic_error("a fiber of another thread accepts on the listener");
}

tcp_stream stream_on(int accepted, std::error_code& error) noexcept {
  fd socket(accepted);
  try {
    return tcp_stream(std::move(socket));
  } catch (const std::bad_alloc&) {
    error = std::make_error_code(std::errc::not_enough_memory);
  }
  return {};
}

bool means_exhaustion(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

struct tcp_listener::state {
  explicit state(fd listening) noexcept : socket(std::move(listening)) {}

  fd socket;
  detail::stream_queue queue;

  std::int32_t accept() {
    const stream_turn accepting(queue, "turn to accept on fd", socket.get());
    if (accepting.refusal() != 0) return accepting.refusal();
    operation op;
    op.kind = verb::accept;
    op.fd = socket.get();
    op.flags = SOCK_CLOEXEC;
    op.nonblocking = true;
    return detail::perform_now(op, "accept on fd");
  }
};

tcp_listener::tcp_listener(const endpoint& where, int backlog) {
  if (backlog < 1) throw std::invalid_argument("a listener's backlog must be at least 1");
  listen(where, backlog, false);
}

tcp_listener::tcp_listener(const endpoint& where, int backlog, shared_port) {
  listen(where, backlog, true);
}

void tcp_listener::listen(const endpoint& where, int backlog, bool shares_port) {
  using detail::faults::call;
  const int kind = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
  fd made(call("socket", ::socket, where.address()->sa_family, kind, 0));
  if (!made) detail::throw_errno(errno, "socket");
  const int on = 1;
  ::setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (shares_port) ::setsockopt(made.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  if (call("bind", ::bind, made.get(), where.address(), where.length()) != 0 ||
      call("listen", ::listen, made.get(), backlog) != 0) {
    throw std::system_error(errno, std::system_category(), "listen on " + where.to_string());
  }
  state_ = std::make_unique<state>(std::move(made));
}

tcp_listener::tcp_listener(tcp_listener&&) noexcept = default;

tcp_listener& tcp_listener::operator=(tcp_listener&& other) noexcept {
  if (this != &other) {
    close();
    state_ = std::move(other.state_);
  }
  return *this;
}

tcp_listener::~tcp_listener() {
  close();
}

tcp_stream tcp_listener::accept() {
  detail::here().deliver();
  const int number = native_handle();  // the listener may be moved while the call waits
  const std::int32_t result = state_ == nullptr ? -EBADF : state_->accept();
  return tcp_stream(fd(static_cast<int>(detail::settled(result, "accept", number))));
}

tcp_stream tcp_listener::accept(std::error_code& error) noexcept {
  const std::size_t number =
      detail::quietly(error, [&] { return state_ == nullptr ? -EBADF : state_->accept(); });
  return error ? tcp_stream() : stream_on(static_cast<int>(number), error);
}

/// The fibers in accept() must have left it before the state is destroyed.
void tcp_listener::close() {
  if (state_ == nullptr) return;
  if (state_->queue.taken_elsewhere()) refuse_other_thread();
  const std::unique_ptr<state> closed = std::move(state_);
  closed->queue.close();
  closed->socket.close();
  if (detail::thread_state* thread = detail::self()) {
    while (closed->queue.in_use()) thread->snooze();
  }
}

int tcp_listener::native_handle() const noexcept {
  return state_ == nullptr ? -1 : state_->socket.get();
}

void tcp_listener::serve_each(const handler_function& handler, error_function on_error) {
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
  const auto serve_one = [&](tcp_stream peer) {
    try {
      handler(std::move(peer));
    } catch (const cancelled&) {
      throw;
    } catch (...) {
      report(std::current_exception());
    }
  };
  group connections;  // declared last: its fibers use all of the above until they are over
  auto pause = 1ms;
  for (;;) {
    const std::int32_t accepted = state_ == nullptr ? -EBADF : state_->accept();
    std::error_code error(std::max(-accepted, 0), std::system_category());
    tcp_stream peer = error ? tcp_stream() : stream_on(accepted, error);
    detail::here().deliver();
    if (!error) {
      pause = 1ms;
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
    pause = std::min(pause * 2, 1000ms);
  }
}

/// All listeners listen before the first one accepts: if one of them cannot listen, no connection
/// that another has accepted is lost.
void tcp_listener::serve_on_each(thread_pool& pool, const endpoint& where,
                                 const handler_function& handler, const error_function& on_error) {
  if (where.port() == 0) throw std::invalid_argument("threads that share a port need its number");
  std::vector<tcp_listener> listeners;
  for (std::size_t i = 0; i < pool.workers(); ++i) {
    listeners.push_back(tcp_listener(where, SOMAXCONN, shared_port{}));
  }
  group shards;
  for (std::size_t i = 0; i < listeners.size(); ++i) {
    shards.spin([&, i] {
      pool.worker(i).call([&] {
        tcp_listener listener = std::move(listeners[i]);
        listener.serve(handler, on_error);
      });
    });
  }
  shards.await_all();
}

endpoint tcp_listener::local_endpoint() const {
  return name_of(native_handle(), "getsockname", ::getsockname);
}

}}}  // namespace motet::MOTET_ABI::net
