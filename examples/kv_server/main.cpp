// SPDX-License-Identifier: MIT
// A store of keys and values that speaks the protocol of Redis: GET SET DEL INCR EXPIRE MGET LPUSH
// LRANGE PUBLISH SUBSCRIBE PING. What has been answered is in the log, and there again after a
// crash.
//
// usage: kv_server [--port PORT] [--log FILE] [--no-sync]
//        redis-cli -p 6380 set greeting hello
#include <algorithm>
#include <chrono>
#include <iostream>
#include <motet/motet.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "server.hpp"

int main(int count, char** arguments) {
  const std::vector<std::string_view> options(arguments + 1, arguments + count);
  const auto value_of = [&](std::string_view name) {
    const auto position = std::find(options.begin(), options.end(), name);
    return position == options.end() || position + 1 == options.end() ? std::string()
                                                                      : std::string(position[1]);
  };
  const std::string port = value_of("--port");
  const bool syncs = std::find(options.begin(), options.end(), "--no-sync") == options.end();
  motet::net::tcp_listener listener(motet::net::endpoint::loopback(
      port.empty() ? 6380 : static_cast<std::uint16_t>(std::stoi(port))));
  return motet::run_until_signal([&](const std::stop_token& stop) {
    std::cout << "listening on " << listener.local_endpoint().to_string() << std::endl;
    serve_store(listener, value_of("--log"), syncs,
                {.drain = stop, .grace = std::chrono::seconds(1)});
  });
}
