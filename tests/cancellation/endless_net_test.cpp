// SPDX-License-Identifier: MIT
// Loops of calls that never have to wait: listeners, connections, datagrams and names.
#include <array>
#include <stop_token>
#include <system_error>

#include "cancellation/endless_io.hpp"
#include "cancellation/endless_loop.hpp"
#include "io/servers.hpp"
#include "sockets.hpp"

namespace {

using namespace testing;
using net::endpoint;
using net::tcp_listener;
using net::udp_socket;
using net::unix_datagram;
using net::unix_listener;
using net::unix_stream;

net::serve_options over_at_once() {
  std::stop_source drained;
  drained.request_stop();
  return {.drain = drained.get_token()};
}

/// A datagram socket, and another one that has its address.
template <typename Socket>
struct datagrams {
  /// Has a byte come, without a word to motet.
  void send_plainly() {
    if (::send(target.native_handle(), "a", 1, 0) != 1) throw std::runtime_error("send");
  }
  void receive_plainly() { ::recv(source.native_handle(), single.data(), 1, 0); }

  Socket source;
  Socket target = Socket::connect(source.local_endpoint());
};

struct udp : datagrams<udp_socket> {
  udp() : datagrams{udp_socket(endpoint::loopback(0))} {}
};

struct local_datagrams : datagrams<unix_datagram> {
  local_datagrams() : datagrams{unix_datagram(endpoint::unix_abstract(name()))} {}
  static std::string name() { return "endless-" + std::to_string(::getpid()); }
};

const switchpoint_table table = {
    {"net::tcp_listener::on_all_addresses",
     [](endless_loop& again) { again([] { tcp_listener::on_all_addresses("127.0.0.1", 0); }); }},
    {"net::tcp_listener::accept",
     [](endless_loop& again) {
       tcp_listener listens{make_listener()};
       again([&, port = port_of(listens.native_handle())] {
         const fd comes = connect_to(port);
         reset_when_closed(listens.accept());
       });
     }},
    {"net::tcp_listener::accept, with a code",
     [](endless_loop& again) {
       tcp_listener listens{make_listener()};
       again([&, port = port_of(listens.native_handle())] {
         const fd comes = connect_to(port);
         std::error_code error;
         const auto accepted = listens.accept(error);
         if (!error) reset_when_closed(accepted);
         return error;
       });
     }},
    {"net::tcp_listener::serve",
     [](endless_loop& again) {
       again([] {
         tcp_listener listens(endpoint::loopback(0));
         listens.serve(over_at_once(), [](const tcp_stream&) {});
       });
     }},
    {"net::tcp_listener::serve, on a pool",
     [](endless_loop& again) {
       thread_pool pool(1);
       const endpoint address = free_port();
       again([&] { tcp_listener::serve(pool, address, over_at_once(), [](const tcp_stream&) {}); });
     }},
    {"net::tcp_stream::connect",
     [](endless_loop& again) {
       const fd listens = make_listener();
       again([&, address = endpoint::loopback(port_of(listens.get()))] {
         reset_when_closed(tcp_stream::connect(address));
         const fd accepted(::accept(listens.get(), nullptr, nullptr));
       });
     }},
    {"net::tcp_stream::connect, by name",
     [](endless_loop& again) {
       const fd listens = make_listener();
       again([&, port = port_of(listens.get())] {
         reset_when_closed(tcp_stream::connect("127.0.0.1", port));
         const fd accepted(::accept(listens.get(), nullptr, nullptr));
       });
     }},
    {"net::unix_listener::accept",
     [](endless_loop& again) {
       unix_listening plain;
       unix_listener listens{fd(::dup(plain.get()))};
       again([&] {
         const fd comes = plain.knock();
         listens.accept();
       });
     }},
    {"net::unix_listener::accept, with a code",
     [](endless_loop& again) {
       unix_listening plain;
       unix_listener listens{fd(::dup(plain.get()))};
       again([&] {
         const fd comes = plain.knock();
         std::error_code error;
         listens.accept(error);
         return error;
       });
     }},
    {"net::unix_listener::serve",
     [](endless_loop& again) {
       again([] {
         unix_listener listens(endpoint::unix_abstract(local_datagrams::name()));
         listens.serve(over_at_once(), [](const unix_stream&) {});
       });
     }},
    {"net::unix_stream::connect",
     [](endless_loop& again) {
       const unix_listener listens(endpoint::unix_abstract(local_datagrams::name()));
       again([&, address = listens.local_endpoint()] {
         unix_stream::connect(address);
         const fd accepted(::accept(listens.native_handle(), nullptr, nullptr));
       });
     }},
    {"net::udp_socket::receive_from",
     [](endless_loop& again) {
       udp sockets;
       again([&] {
         sockets.send_plainly();
         sockets.source.receive_from(single);
       });
     }},
    {"net::udp_socket::receive_from, with a code",
     [](endless_loop& again) {
       udp sockets;
       again([&] {
         sockets.send_plainly();
         std::error_code error;
         sockets.source.receive_from(single, error);
         return error;
       });
     }},
    {"net::udp_socket::receive_many",
     [](endless_loop& again) {
       udp sockets;
       std::array slots{net::datagram_slot{single}};
       again([&] {
         sockets.send_plainly();
         sockets.source.receive_many(slots);
       });
     }},
    {"net::udp_socket::send_to",
     [](endless_loop& again) {
       udp sockets;
       again([&] { sockets.source.send_to(single, sockets.source.local_endpoint()); });
     }},
    {"net::udp_socket::send",
     [](endless_loop& again) {
       udp sockets;
       again([&] { sockets.target.send(single); });
     }},
    {"net::udp_socket::send, with a code",
     [](endless_loop& again) {
       udp sockets;
       again([&] {
         std::error_code error;
         sockets.target.send(single, error);
         return error;
       });
     }},
    {"net::udp_socket::send_many",
     [](endless_loop& again) {
       udp sockets;
       const std::array letters{
           net::outgoing_datagram{single, sockets.source.local_endpoint()},
       };
       again([&] { sockets.source.send_many(letters); });
     }},
    {"net::unix_datagram::receive_from",
     [](endless_loop& again) {
       local_datagrams sockets;
       again([&] {
         sockets.send_plainly();
         sockets.source.receive_from(single);
       });
     }},
    {"net::unix_datagram::send",
     [](endless_loop& again) {
       local_datagrams sockets;
       again([&] {
         sockets.target.send(single);
         sockets.receive_plainly();
       });
     }},
    {"dns::resolve, a numeric address",
     [](endless_loop& again) { again([] { dns::resolve("127.0.0.1", 80); }); }},
    {"dns::resolve", [](endless_loop& again) { again([] { dns::resolve("localhost", "80"); }); }},
};

}  // namespace

ENDLESS_LOOPS_END(table)
