// SPDX-License-Identifier: MIT
// See net/tcp_listener.hpp.
#include <cstdint>
#include <exception>
#include <motet/base/errors.hpp>
#include <motet/cancellation/cancel.hpp>
#include <motet/fibers/group.hpp>
#include <motet/net/tcp_listener.hpp>
#include <motet/sync/time.hpp>
#include <motet/threads/thread.hpp>
#include <motet/threads/thread_pool.hpp>
#include <stdexcept>
#include <stop_token>
#include <utility>
#include <vector>

#include "io/io.hpp"
#include "io/net/server.hpp"
#include "io/net/socket.hpp"
#include "io/net/socket_listener.hpp"

namespace motet { inline namespace MOTET_ABI { namespace net {

tcp_listener::tcp_listener(const endpoint& address, listen_options options)
    : socket_listener(detail::listening_socket(of_kind(address, false), options)) {}

tcp_stream tcp_listener::accept() {
  return tcp_stream(accept_fd());
}

tcp_stream tcp_listener::accept(std::error_code& error) noexcept {
  const std::size_t number = detail::quietly(error, [&] { return accept_now(); });
  return error ? tcp_stream() : stream_on<tcp_stream>(static_cast<int>(number), error);
}

std::size_t tcp_listener::serve_each(const serve_options& options, const handler_function& handler,
                                     call_site site) {
  return server<tcp_stream>(options, handler, site)
      .run([this](peer_address& peer) { return accept_now(peer.get(), &peer.length); },
           [this](peer_address& peer) { return accept_ready(peer.get(), &peer.length); },
           [this] { close(); });
}

/// Fibers of this thread accept, and wait until the handlers on the workers are over.
class tcp_listener::shared_out {
 public:
  shared_out(thread_pool& pool, const handler_function& handler, call_site site)
      : pool_(pool), handler_(handler), site_(site), counts_(pool.workers()) {
    pool.check_running();
  }

  /// Ends, as a stopped pool does, what `serve` does.
  template <typename Serve>
  std::size_t run(Serve serve) {
    std::size_t count = 0;
    group tasks;
    tasks.spin({.name = "pool", .transient = true}, [this] { call_on(0, [] { sleep(); }); }, site_);
    move_on_when_stopped(stop_.get_token(), [&] { count = serve(); });
    if (error_ != nullptr) std::rethrow_exception(error_);
    return count;
  }

  void hand_over(tcp_stream&& peer) {
    const std::size_t index = least_loaded();
    struct counted {
      explicit counted(std::size_t& count) noexcept : connections(count) { ++connections; }
      ~counted() { --connections; }
      std::size_t& connections;
    };
    const counted connection(counts_[index]);
    fd socket = peer.release();
    call_on(index, [&] { handler_(tcp_stream(std::move(socket))); });
  }

 private:
  /// Beside its connections a worker may have jobs.
  std::size_t least_loaded() const noexcept {
    std::size_t best = 0;
    for (std::size_t i = 1; i < counts_.size(); ++i) {
      if (load_of(i) < load_of(best)) best = i;
    }
    return best;
  }
  std::int64_t load_of(std::size_t worker) const noexcept {
    return pool_.load_of(worker) + static_cast<std::int64_t>(counts_[worker]);
  }

  template <typename F>
  void call_on(std::size_t worker, F f) {
    try {
      pool_.worker(worker).call(f, site_);
    } catch (const fiber_cancelled&) {
      if (!pool_stopped()) throw;
      note_stop();
    } catch (const executor_stopped&) {
      if (!pool_stopped()) throw;
      note_stop();
    }
  }
  /// A handler may throw the same: it may have awaited a cancelled fiber, or used another pool.
  bool pool_stopped() const {
    try {
      pool_.check_running();
      return false;
    } catch (const executor_stopped&) {
      return true;
    }
  }
  void note_stop() noexcept {
    if (error_ == nullptr) error_ = std::current_exception();
    stop_.request_stop();
  }

  thread_pool& pool_;
  const handler_function& handler_;
  const call_site site_;
  std::vector<std::size_t> counts_;  // connections of each worker
  std::exception_ptr error_;
  std::stop_source stop_;
};

std::size_t tcp_listener::serve_shared_out(thread_pool& pool, const serve_options& options,
                                           const handler_function& handler, call_site site) {
  shared_out workers(pool, handler, site);
  return workers.run([&] {
    return serve_each(options, [&](tcp_stream peer) { workers.hand_over(std::move(peer)); }, site);
  });
}

std::size_t tcp_listener::serve_on_each(thread_pool& pool, const endpoint& listen_address,
                                        const serve_options& options,
                                        const handler_function& handler, call_site site) {
  if (listen_address.port() == 0) throw std::invalid_argument("serve(): the port must not be 0");
  const endpoint address = of_kind(listen_address, false);
  fd socket = detail::bound_socket(address, {.reuse_port = options.share_port});
  detail::share_port(socket);  // not before: the port is refused if it is another's
  detail::start_listening(socket, address, SOMAXCONN);
  return tcp_listener(std::move(socket)).serve_shared_out(pool, options, handler, site);
}

}}}  // namespace motet::MOTET_ABI::net
