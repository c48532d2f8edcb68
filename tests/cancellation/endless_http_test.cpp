// SPDX-License-Identifier: MIT
// Loops of calls that never have to wait: HTTP and WebSockets.
#include <stop_token>
#include <string>
#include <utility>

#include "cancellation/endless_io.hpp"
#include "cancellation/endless_loop.hpp"
#include "http/talk.hpp"

namespace {

using namespace testing;
using http::websocket;
using net::endpoint;

/// Calls `called` for a request whose answer has no body that could wait for the client.
void answer_head(const http::handler& handler) {
  served server(handler);
  server.say("HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  server.hear_out();
}

/// A server that answers every request, and turns one to /chat into a WebSocket that reads.
class whole_server {
 public:
  whole_server() {
    serving_.spin([this] {
      http::serve(listens_, [](request& query, response& answer) {
        if (query.target() != "/chat") return answer.write("hello");
        websocket socket = websocket::accept(query, answer);
        while (socket.read()) {
        }
      });
    });
  }
  std::string address(std::string_view scheme, std::string_view path) const {
    return std::string(scheme) + "://" + address_.to_string() + std::string(path);
  }
  websocket connected() const { return websocket::connect(address("ws", "/chat")); }

 private:
  net::tcp_listener listens_{endpoint::loopback(0)};
  const endpoint address_ = listens_.local_endpoint();
  group serving_;
};

/// What a client got, read to its end.
struct read_out {
  read_out() { body.text(); }
  whole_server server;
  http::client asks;
  http::reply body = asks.get(server.address("http", "/"));
};

struct ended_websocket {
  ended_websocket() { socket.close(); }
  whole_server server;
  websocket socket = server.connected();
};

const switchpoint_table table = {
    {"http::client::get",
     [](endless_loop& again) {
       whole_server server;
       http::client asks;
       again([&] { asks.get(server.address("http", "/")).text(); });
     }},
    {"http::client::request",
     [](endless_loop& again) {
       whole_server server;
       http::client asks;
       again([&] { asks.request("GET", server.address("http", "/")).text(); });
     }},
    {"http::client::post",
     [](endless_loop& again) {
       whole_server server;
       http::client asks;
       again([&] { asks.post(server.address("http", "/"), "a", "text/plain").text(); });
     }},
    {"http::reply::read",
     [](endless_loop& again) {
       read_out reply;
       again([&] { reply.body.read(single); });
     }},
    {"http::reply::text",
     [](endless_loop& again) {
       read_out reply;
       again([&] { reply.body.text(); });
     }},
    {"http::request::read",
     [](endless_loop& again) {
       answer_head([&](request& query, response&) { again([&] { query.read(single); }); });
     }},
    {"http::request::text",
     [](endless_loop& again) {
       answer_head([&](request& query, response&) { again([&] { query.text(); }); });
     }},
    {"http::response::write",
     [](endless_loop& again) {
       answer_head([&](request&, response& answer) { again([&] { answer.write("a"); }); });
     }},
    {"http::response::write, nothing",
     [](endless_loop& again) {
       answer_head([&](request&, response& answer) { again([&] { answer.write(""); }); });
     }},
    {"http::response::flush",
     [](endless_loop& again) {
       answer_head([&](request&, response& answer) { again([&] { answer.flush(); }); });
     }},
    {"http::router::operator()",
     [](endless_loop& again) {
       answer_head([&](request& query, response& answer) {
         http::router routes;
         routes.on("HEAD", "/", [](request&, response&) { checkpoint(); });
         again([&] { routes(query, answer); });
       });
     }},
    {"http::serve_connection",
     [](endless_loop& again) {
       again([] {
         auto ends = make_socket_pair(SOCK_NONBLOCK);
         ends.close_second();
         http::serve_connection(tcp_stream(fd(::dup(ends.first()))), {},
                                [](request&, response&) {});
       });
     }},
    {"http::serve",
     [](endless_loop& again) {
       std::stop_source drained;
       drained.request_stop();
       again([&] {
         net::tcp_listener listens(endpoint::loopback(0));
         http::serve_options config;
         config.connections.drain = drained.get_token();
         http::serve(listens, config, [](request&, response&) {});
       });
     }},
    {"http::websocket::connect",
     [](endless_loop& again) {
       whole_server server;
       again([&] { server.connected(); });
     }},
    {"http::websocket::read",
     [](endless_loop& again) {
       ended_websocket socket;
       again([&] { socket.socket.read(); });
     }},
    {"http::websocket::write",
     [](endless_loop& again) {
       whole_server server;
       websocket socket = server.connected();
       again([&] { socket.write("a"); });
     }},
    {"http::websocket::close",
     [](endless_loop& again) {
       ended_websocket socket;
       again([&] { socket.socket.close(); });
     }},
};

}  // namespace

ENDLESS_LOOPS_END(table)
