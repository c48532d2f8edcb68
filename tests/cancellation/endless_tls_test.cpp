// SPDX-License-Identifier: MIT
// Loops of calls that never have to wait: TLS.
#include <string>
#include <system_error>
#include <vector>

#include "cancellation/endless_io.hpp"
#include "cancellation/endless_loop.hpp"
#include "tls/pairs.hpp"

namespace {

using namespace testing;

/// A stream whose peer has said that there is no more.
struct ended_pair : secure_pair {
  ended_pair() : secure_pair(trust().pair()) { server.shutdown(SHUT_WR); }
};

/// A stream whose peer takes all that is written.
struct heard_pair : secure_pair {
  heard_pair() : secure_pair(trust().pair()) {
    listens.spin([this] {
      std::vector<std::byte> room(1 << 16);
      while (server.read(room) > 0) {
      }
    });
  }
  group listens;
};

const switchpoint_table table = {
    {"tls::stream::connect", [](endless_loop& again) { again([] { trust().pair(); }); }},
    {"tls::stream::accept", [](endless_loop& again) { again([] { trust().pair(); }); }},
    {"tls::stream::read",
     [](endless_loop& again) {
       ended_pair ends;
       again([&] { ends.client.read(single); });
     }},
    {"tls::stream::read, with a code",
     [](endless_loop& again) {
       ended_pair ends;
       again([&] {
         std::error_code error;
         ends.client.read(single, error);
         return error;
       });
     }},
    {"tls::stream::read, nothing",
     [](endless_loop& again) {
       secure_pair ends = trust().pair();
       again([&] { ends.client.read(no_room); });
     }},
    {"tls::stream::write",
     [](endless_loop& again) {
       heard_pair ends;
       again([&] { ends.client.write(single); });
     }},
    {"tls::stream::write, nothing",
     [](endless_loop& again) {
       secure_pair ends = trust().pair();
       again([&] { ends.client.write(no_bytes); });
     }},
    {"tls::stream::write_all",
     [](endless_loop& again) {
       heard_pair ends;
       again([&] { ends.client.write_all(single); });
     }},
    {"tls::stream::write_all, nothing",
     [](endless_loop& again) {
       secure_pair ends = trust().pair();
       again([&] { ends.client.write_all(""); });
     }},
    {"tls::stream::shutdown",
     [](endless_loop& again) {
       secure_pair ends = trust().pair();
       ends.client.shutdown(SHUT_WR);
       again([&] { ends.client.shutdown(SHUT_WR); });
     }},
};

}  // namespace

ENDLESS_LOOPS_END(table)
