// SPDX-License-Identifier: MIT
// A server of HTTP on one end of a connection, and what a client at the other end writes and reads.
#pragma once

#include <motet/http.hpp>
#include <motet/motet.hpp>
#include <string>
#include <utility>

#include "catch.hpp"
#include "io/streams.hpp"
#include "support.hpp"

namespace testing {

using http::request;
using http::response;

inline std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t position = text.find(part); position != std::string::npos;
       position = text.find(part, position + 1)) {
    ++count;
  }
  return count;
}

/// A connection that is served by a fiber.
class served {
 public:
  explicit served(const http::handler& handler, http::serve_options options = {})
      : handler_(handler), options_(std::move(options)) {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    client = tcp_stream(fd(ends[0]));
    tasks_.spin([this, end = fd(ends[1])]() mutable {
      try {
        http::serve_connection(tcp_stream(std::move(end)), options_, handler_);
      } catch (const std::exception&) {
        failure_ = std::current_exception();
      }
    });
  }

  void say(std::string_view text) { client.write_all(text); }
  /// Returns: what comes next, as one piece.
  std::string hear() { return read_text(client, 1 << 16); }
  /// Returns: all that comes until the connection ends.
  std::string hear_out() { return read_to_end(client); }
  /// Returns: all that a client gets that says `text`, and nothing else.
  std::string answer_to(std::string_view text) {
    say(text);
    client.shutdown(SHUT_WR);
    return hear_out();
  }
  /// Waits for the server's fiber. Throws: what that has thrown.
  void await_end() {
    tasks_.await_all();
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }

  tcp_stream client;

 private:
  const http::handler handler_;
  const http::serve_options options_;
  std::exception_ptr failure_;
  group tasks_;
};

inline std::string answer_to(std::string_view text, const http::handler& handler,
                             const http::serve_options& options = {}) {
  return served(handler, options).answer_to(text);
}

/// Answers with what was asked for, and the body.
inline void echo(request& request, response& answer) {
  answer.write(std::string(request.method()) + ' ' + std::string(request.target()) + ' ');
  answer.write(request.text());
}

inline std::string get(const std::string& target, const std::string& fields = {}) {
  return "GET " + target + " HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n";
}

/// Returns: `answer` without its date.
inline std::string undated(std::string answer) {
  for (std::size_t position = answer.find("Date: "); position != std::string::npos;
       position = answer.find("Date: ", position)) {
    answer.erase(position, answer.find("\r\n", position) + 2 - position);
  }
  return answer;
}

}  // namespace testing
