// SPDX-License-Identifier: MIT
// A node of a group that agrees on a sequence of lines. It takes them from its standard input, and
// says which are agreed on.
//
// usage: raft SELF ADDRESS... < LINES
//        raft 0 127.0.0.1:7000 127.0.0.1:7001 127.0.0.1:7002
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <motet/motet.hpp>
#include <random>
#include <string>

#include "raft.hpp"

int main(int count, char** arguments) {
  if (count < 3) {
    std::cerr << "usage: raft SELF ADDRESS...\n";
    return 2;
  }
  raft::options how;
  how.self = static_cast<std::size_t>(std::atoi(arguments[1]));
  for (int i = 2; i < count; ++i) how.nodes.push_back(motet::net::endpoint::parse(arguments[i]));
  std::mt19937 source(std::random_device{}());
  how.random = [&](std::uint32_t limit) { return static_cast<std::uint32_t>(source() % limit); };
  how.directory = "raft-" + std::to_string(how.self);
  return motet::run_until_signal([&](const std::stop_token& stop) {
    std::error_code exists;
    motet::io::mkdirat(AT_FDCWD, how.directory.c_str(), 0750, exists);
    raft::node self(how, [](std::uint64_t index, const std::string& line) {
      std::cout << index << ' ' << line << std::endl;
    });
    motet::group tasks;
    tasks.spin([&] { self.run(); });
    tasks.spin([&] {
      motet::file input(motet::fd(::dup(STDIN_FILENO)));
      motet::reader lines(input);
      while (const auto line = lines.line()) {
        const std::string text(*line);
        while (!self.submit(text)) motet::sleep_for(std::chrono::milliseconds(100));
      }
    });
    motet::move_on_when_stopped(stop, [&] { tasks.await_all(); });
  });
}
