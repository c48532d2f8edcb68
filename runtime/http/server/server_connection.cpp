// SPDX-License-Identifier: MIT
// See http/server/server_connection.hpp. Source: RFC 9112, 9.
#include "http/server/server_connection.hpp"

#include <algorithm>
#include <motet/base/errors.hpp>
#include <motet/cancellation/cancel.hpp>
#include <system_error>

#include "http/lists.hpp"
#include "http/reason_phrase.hpp"
#include "http/server/admission.hpp"
#include "http/server/linger.hpp"
#include "http/text.hpp"

namespace motet { inline namespace MOTET_ABI { namespace http {

namespace {

using namespace std::chrono_literals;

/// How long an idle connection stays open after the server starts to drain: its client may be about
/// to send a request.
constexpr clock::duration last_chance = 1s;

/// Limits for a body that the handler has not read: its size, and the time that it may take.
constexpr std::uint64_t most_unread = std::uint64_t{64} * 1024;
constexpr clock::duration longest_drain = 1s;

/// Empty lines before one request.
constexpr int most_empty_lines = 4;

constexpr std::string_view end_of_head = "\r\n\r\n";

}  // namespace

server_connection::server_connection(detail::any_stream stream, const serve_options& options,
                                     const handler& function)
    : stream_(std::move(stream)),
      options_(options),
      function_(function),
      input_(stream_.input(), std::max(options.head, std::size_t{16} * 1024) + end_of_head.size()),
      body_(input_, parser_),
      answer_(stream_.output(), options.stall) {}

void server_connection::serve() {
  std::exception_ptr failure;
  try {
    while (failure == nullptr && !is_over_ && await_head()) failure = answer_one();
  } catch (const std::system_error&) {
    if (!answer_.lost()) throw;  // else the client is gone, or cannot be reached
  }
  if (failure != nullptr) std::rethrow_exception(failure);
}

/// Returns: the handler's failure, if the caller of serve() must receive it.
std::exception_ptr server_connection::answer_one() {
  const clock::time_point start = clock::now();
  std::exception_ptr failure = handle();
  is_over_ = answer_.broken() || !answer_.keeps_alive();
  if ((is_over_ || !body_.ended()) && !answer_.lost()) answer_.send();
  const clock::duration duration = clock::now() - start;
  if (!is_over_) is_over_ = !body_.skip(most_unread, longest_drain);
  if (is_over_ && !answer_.lost() && (!answer_.broken() || answer_.handed_over())) end_connection();
  if (!options_.log) return failure;
  try {
    options_.log({head_.method, head_.target, answer_.status, answer_.written(), duration});
  } catch (const std::exception&) {
    if (failure == nullptr) failure = std::current_exception();
  }
  return failure;
}

/// Returns: whether there is a request to be handled. What has been answered is sent before this
///          waits.
bool server_connection::await_head() {
  empty_lines_ = 0;
  skip_empty_lines(0);
  const bool is_there = text_of(input_.peek(0)).find(end_of_head) != std::string_view::npos;
  if (!is_there) {
    answer_.send();
    if (!await_first_byte()) return false;
  }
  is_first_ = false;
  answer_.begin(false, true, false);
  try {
    bool came = false;
    if (is_there) {
      came = read_head();
    } else if (!move_on_after(options_.rest_of_head, [&] { came = read_head(); })) {
      refuse(408);
      return false;
    }
    return came;
  } catch (const limit_exceeded&) {
    const bool has_line = text_of(input_.peek(0)).find("\r\n") != std::string_view::npos;
    refuse(has_line ? 431 : 414);
  } catch (const unexpected_eof&) {
  } catch (const std::system_error&) {  // the client has disconnected
  }
  return false;
}

bool server_connection::await_first_byte() {
  const std::stop_token& drain = options_.connections.drain;
  try {
    if (!drain.stop_possible()) return has_come(is_first_ ? options_.first_byte : options_.idle);
    bool came = false;
    if (move_on_when_stopped(
            drain, [&] { came = has_come(is_first_ ? options_.first_byte : options_.idle); })) {
      return came;
    }
    return has_come(last_chance);
  } catch (const std::system_error&) {  // the client has disconnected
    return false;
  }
}

bool server_connection::has_come(clock::duration limit) {
  bool came = false;
  return move_on_after(limit, [&] { came = !input_.peek(1).empty(); }) && came;
}

/// An empty line before a request is a leftover of a client that ends its bodies by one.
void server_connection::skip_empty_lines(std::size_t size) {
  for (; empty_lines_ < most_empty_lines && text_of(input_.peek(size)).starts_with("\r\n");
       ++empty_lines_) {
    input_.skip(2);
  }
}

/// Reads the head, and refuses a malformed one. Returns: whether there is a request to handle.
bool server_connection::read_head() {
  skip_empty_lines(2);
  const std::string_view begin = text_of(input_.peek(1));  // may arrive after an empty line
  if (!begin.empty() && !is_token(begin.substr(0, 1))) {
    refuse(400);
    return false;
  }
  const std::optional<std::string_view> text = input_.until(end_of_head, options_.head);
  if (!text.has_value()) return false;
  int status = parser_.parse_request(*text, options_.fields, head_);
  if (status == 0) status = read_target();
  if (status != 0) {
    refuse(status);
    return false;
  }
  body_.begin(head_, options_.body, options_.stall);
  const bool drains = options_.connections.drain.stop_requested();
  answer_.begin(head_.method == "HEAD", head_.is_1_1, head_.keep_alive && !drains);
  return true;
}

int server_connection::read_target() {
  if (head_.method == "CONNECT") return is_host_and_port(head_.target) ? 501 : 400;
  const std::optional<target> url_target = parse_target(head_.target);
  path_.clear();
  parameters_.clear();
  if (!url_target.has_value() || !decode(url_target->path, false, path_)) return 400;
  if (url_target->path == "*" && head_.method != "OPTIONS") return 400;
  const std::string_view host = head_.headers.get("host");
  const bool combined = host.find(',') != host.npos;  // by a proxy that received several
  if (combined || !is_authority(host)) return 400;
  encoded_path_ = url_target->path;
  query_ = url_target->query;
  // What a Host field says beside an authority does not count. Source: RFC 9112, 3.2.2.
  authority_ = url_target->authority;
  return 0;
}

std::exception_ptr server_connection::handle() {
  request request(*this);
  response answer(*this);
  std::exception_ptr failure;
  try {
    admit(request, answer);
    drain_body();
    if (!answer_.broken()) answer_.finish();
    return nullptr;
  } catch (const cancelled&) {
    throw;
  } catch (const status_error& error) {
    fail(error.status(), error.what());
  } catch (...) {
    if (body_.lost()) answer_.cut();
    // The client has disconnected, or cannot be reached.
    if (body_.lost() || answer_.lost() || answer_.is_client_error()) return nullptr;
    failure = std::current_exception();
    answer_.forget();
    fail(500, reason_phrase(500));
    answer_.close_after();
  }
  drain_body();
  if (!answer_.broken()) answer_.finish();
  return failure;
}

/// Calls the handler, unless the thread is overloaded.
void server_connection::admit(request& request, response& answer) {
  const clock::duration patience = options_.shed_when_late;
  if (patience == clock::duration(0)) return call_handler(request, answer);
  const clock::duration delay = waiting_time(native_handle());
  const clock::time_point start = clock::now();
  admission& door = admission::here(patience);
  if (door.refuses(delay)) return refuse_overload();
  admission::in_service service(door);
  service.let_others_be_decided();
  if (door.refuses_at_start(delay + (clock::now() - start))) return refuse_overload();
  call_handler(request, answer);
}

void server_connection::refuse_overload() {
  fail(503, reason_phrase(503));
  answer_.headers.set("Retry-After", "1");
}

void server_connection::call_handler(request& request, response& answer) {
  const std::optional<clock::duration> limit = limit_of_handler();
  if (!limit.has_value()) return function_(request, answer);
  if (!move_on_after(*limit, [&] { function_(request, answer); })) {
    fail(503, reason_phrase(503));
    answer_.close_after();
  }
}

/// Returns: std::nullopt if the handler has no time limit.
std::optional<clock::duration> server_connection::limit_of_handler() const {
  std::optional<clock::duration> limit;
  if (options_.handling > clock::duration(0)) limit = options_.handling;
  if (const auto text = head_.headers.find("request-timeout")) {
    const std::optional<clock::duration> client_limit = seconds_of(*text);
    if (client_limit) limit = std::min(limit.value_or(*client_limit), *client_limit);
  }
  return limit;
}

/// Sends an error response if none has begun; otherwise truncates the response and closes the
/// connection, which is the only way left to report an error to the client.
void server_connection::fail(int status, std::string_view text) {
  if (answer_.begun()) {
    answer_.cut();
    return;
  }
  answer_.drop_body();
  answer_.status = status;
  answer_.headers.set("Content-Type", "text/plain; charset=utf-8");
  answer_.write(std::as_bytes(std::span(text)));
  answer_.write(std::as_bytes(std::span("\n", 1)));
}

/// Whether the client may still wait for "100 Continue" before it sends the body.
/// Source: RFC 9110, 10.1.1.
bool server_connection::awaits_100_continue() {
  return !body_.begun() && !body_.ended() && head_.is_1_1 &&
         has_member(head_.headers, "expect", "100-continue") && input_.peek(0).empty();
}

/// Drops the part of an unread body that has arrived, and decides whether to keep the connection;
/// answer_one() reads the rest of a short body after the response. A client that waits for
/// "100 Continue" may send its body or not, so that connection is closed.
void server_connection::drain_body() {
  const bool reusable =
      body_.ended() ||
      (!awaits_100_continue() && (body_.skip(most_unread, 0s) || body_.can_skip(most_unread)));
  if (!reusable || options_.connections.drain.stop_requested()) answer_.close_after();
}

void server_connection::refuse(int status) {
  if (answer_.broken()) return;
  try {
    fail(status, reason_phrase(status));
    answer_.close_after();
    answer_.finish();
    answer_.send();
    end_connection();
  } catch (const std::system_error&) {  // the client has disconnected
  }
}

void server_connection::end_connection() noexcept {
  linger(stream_, input_, options_.connections.drain);
}

std::size_t server_connection::read_body(std::span<std::byte> buffer) {
  const bool is_wanted = !body_.is_too_large() && !answer_.begun();
  if (is_wanted && awaits_100_continue()) answer_.ask_to_continue();
  if (!body_.ended() && !answer_.begun() && input_.peek(0).empty()) answer_.send();  // earlier ones
  return body_.read(buffer);
}

}}}  // namespace motet::MOTET_ABI::http

namespace motet { inline namespace MOTET_ABI { namespace detail {

void serve_http(any_stream stream, const http::serve_options& options,
                const http::handler& function) {
  http::server_connection(std::move(stream), options, function).serve();
}

}}}  // namespace motet::MOTET_ABI::detail
