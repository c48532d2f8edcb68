// SPDX-License-Identifier: MIT
// See motet/http/client.hpp. Source: RFC 9110, 9.2 and 15.4.
#include <array>
#include <chrono>
#include <motet/base/errors.hpp>
#include <motet/cancellation/cancel.hpp>
#include <motet/http/client.hpp>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "http/client/client_request.hpp"
#include "http/client/connection_pool.hpp"
#include "http/client/early_answer.hpp"
#include "http/client/reply.hpp"
#include "http/lists.hpp"
#include "http/text.hpp"

namespace motet { inline namespace MOTET_ABI { namespace http {

namespace {

bool is_redirection(int status) noexcept {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/// Source: RFC 9110, 15.4.
bool becomes_get(int status, std::string_view method) noexcept {
  return status == 303 ? method != "HEAD" : status < 303 && method == "POST";
}

void change_to_get(client_request& request) {
  request.method = "GET";
  request.with_body = false;
  for (const char* of_body : {"content-type", "content-encoding", "content-language"}) {
    request.headers.remove(of_body);
  }
}

void remove_credentials(client_request& request) {
  for (const char* of_host : {"authorization", "cookie", "host", "proxy-authorization"}) {
    request.headers.remove(of_host);
  }
}

/// Changes `request` to the request that a redirection calls for.
/// Returns: false if there is none to follow. An invalid address, or one that contains a user name,
///          which may disguise the host, is left to the caller. Source: RFC 9110, 4.2.4.
/// Throws: bad_reply for a redirection from https to http.
bool follow(const reply& answer, client_request& request) {
  const std::string_view location = answer.header("location");
  if (!is_redirection(answer.status()) || location.empty()) return false;
  const bool changes_method = becomes_get(answer.status(), request.method);
  if (request.streams() && !changes_method) return false;
  const std::string origin = request.target.origin();
  const bool was_secure = request.target.is_secure;
  try {
    request.target = request.target.resolve(location);
  } catch (const std::invalid_argument&) {
    return false;
  }
  if (was_secure && !request.target.is_secure)
    throw bad_reply("the server redirects from https to http");
  if (changes_method) change_to_get(request);
  if (request.target.origin() != origin) remove_credentials(request);
  return true;
}

/// A caller that knows how much body_from gives says so by a header.
/// Throws: std::invalid_argument.
void extract_length(client_request& request) {
  const std::optional<std::string_view> text = request.headers.find("content-length");
  if (!text.has_value()) return;
  if (!request.streams()) {
    throw std::invalid_argument("request: the caller may set Content-Length only with body_from");
  }
  request.length = number_of(*text);
  if (!request.length.has_value()) {
    throw std::invalid_argument("request: Content-Length is not a number: \"" + std::string(*text) +
                                '"');
  }
  request.headers.remove("content-length");
}

/// A short body that comes soon is read, so that the connection can be used again.
void drain(reply answer) {
  try {
    move_on_after(std::chrono::seconds(1), [&] {
      std::array<std::byte, 4096> scratch;
      for (int pieces = 0; pieces < 16 && answer.read(scratch) > 0; ++pieces) continue;
    });
  } catch (const std::exception&) {  // then it cannot
  }
}

}  // namespace

client::client(const client_options& options) : pool_(std::make_unique<pool>(options)) {}
client::~client() = default;

/// Sends the request once, and waits for the head of its answer.
/// Throws: std::system_error, and then `nothing_came` says whether there was none of an answer.
reply client::ask_once(pool& connections, const client_request& request, bool fresh,
                       bool& nothing_came) {
  nothing_came = false;
  pool::lease lease = connections.take(request.target, fresh);
  connection& channel = *lease.operator->();
  auto answer = std::make_unique<reply::state>(std::move(lease), connections.how());
  answer->address = request.target.text();
  early_answer early_response(*answer, request.method == "HEAD");
  const auto send = [&] { return request.send(channel, connections.how().stall); };
  const std::exception_ptr failure =
      request.is_long() ? early_response.while_sending(send) : send();
  answer->end_sending(failure == nullptr && !has_member(request.headers, "connection", "close"));
  bool came = false;
  nothing_came = true;
  try {
    if (!move_on_after(connections.how().first_byte, [&] { came = early_response.await(); })) {
      nothing_came = false;
      throw timed_out(call_site::here());
    }
  } catch (const limit_exceeded&) {
    throw bad_reply("the header section of the response is too large");
  } catch (const std::system_error&) {
    nothing_came = nothing_came && channel.input.peek(0).empty();
    throw;
  }
  if (came) return reply(std::move(answer));
  if (failure != nullptr) std::rethrow_exception(failure);
  throw std::system_error(std::make_error_code(std::errc::connection_reset),
                          request.target.origin() + " closed the connection without a response");
}

reply client::ask(pool& connections, const client_request& request) {
  for (std::size_t tries = 0;; ++tries) {
    bool nothing_came = false;
    try {
      return ask_once(connections, request, tries > 0, nothing_came);
    } catch (const std::system_error&) {
      if (!nothing_came || !request.can_be_repeated() || tries >= connections.how().retries) throw;
    }
  }
}

reply client::request(std::string_view method, std::string_view address,
                      const request_options& options) {
  if (!is_token(method))
    throw std::invalid_argument("request: not a valid method: " + std::string(method));
  if (options.headers.find("transfer-encoding").has_value()) {
    throw std::invalid_argument("request: the caller must not set Transfer-Encoding");
  }
  if (method == "CONNECT") throw std::invalid_argument("request: CONNECT is not supported");
  if (method == "TRACE" && (!options.body.empty() || options.body_from)) {
    throw std::invalid_argument("request: TRACE must not have a body");
  }
  client_request request{std::string(method), url::parse(address), options.headers, &options};
  extract_length(request);
  const std::size_t limit = pool_->how().redirects;
  for (std::size_t moves = 0;; ++moves) {
    reply answer = ask(*pool_, request);
    if (limit == 0 || !follow(answer, request)) return answer;
    if (moves == limit) throw bad_reply("more than " + std::to_string(limit) + " redirects");
    drain(std::move(answer));
  }
}

reply client::get(std::string_view address) {
  return request("GET", address);
}

reply client::post(std::string_view address, std::string body, std::string_view content_type) {
  request_options options{.body = std::move(body)};
  options.headers.set("Content-Type", content_type);
  return request("POST", address, options);
}

}}}  // namespace motet::MOTET_ABI::http
