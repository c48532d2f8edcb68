// SPDX-License-Identifier: MIT
// The connections of a client: a limited number per host, kept open while idle.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <motet/base/clock.hpp>
#include <motet/detail/io/any_stream.hpp>
#include <motet/detail/io/read_buffer.hpp>
#include <motet/http/client.hpp>
#include <motet/sync/semaphore.hpp>
#include <string>
#include <utility>

#include "http/client/secure.hpp"
#include "http/client/url.hpp"
#include "http/parser.hpp"

namespace motet { inline namespace MOTET_ABI { namespace http {

/// A connection to a server, and what has been read from it ahead.
struct connection {
  connection(detail::any_stream transport, std::size_t most_head)
      : stream(std::move(transport)), input(stream.input(), most_head) {}

  detail::any_stream stream;
  detail::read_buffer input;
  message_parser parser;
  clock::time_point unused_since{};
};

class client::pool {
  struct host;

 public:
  explicit pool(const client_options& options);

  /// The right to a connection to a host, and the connection, which is closed if it is not given
  /// back. Move-only; it must not outlive the pool.
  class lease {
   public:
    lease(lease&& other) noexcept
        : host_(std::exchange(other.host_, nullptr)), connection_(std::move(other.connection_)) {}
    lease& operator=(lease&&) = delete;
    ~lease() { close(); }

    connection* operator->() const noexcept { return connection_.get(); }
    /// Others may use the connection.
    void give_back();
    /// Closes the connection, which frees its slot for another one.
    void close() noexcept;

   private:
    friend class pool;
    explicit lease(host& lender) noexcept : host_(&lender) {}

    host* host_;
    std::unique_ptr<connection> connection_;
  };

  /// Waits for a free slot among the connections to the host of `target`. `fresh`: asks for a
  /// connection that has not been used before.
  /// Throws: std::system_error; timed_out; a pending interruption.
  lease take(const url& target, bool fresh);

  const client_options& how() const noexcept { return options_; }

 private:
  struct host {
    explicit host(std::size_t maximum) : slots(static_cast<std::ptrdiff_t>(maximum)) {}

    local::semaphore slots;
    std::size_t leases = 0;  // held, and callers that wait for one
    std::list<std::unique_ptr<connection>>
        idle_connections;  // the one that was used last comes first
  };

  std::unique_ptr<connection> take_unused(host& target_host) const;
  void drop_old();
  std::unique_ptr<connection> connect(const url& target);

  const client_options options_;
  secure_client secure_;
  std::map<std::string, host> hosts_;
  clock::time_point dropped_old_at_{};
};

}}}  // namespace motet::MOTET_ABI::http
