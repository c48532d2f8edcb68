// SPDX-License-Identifier: MIT
// Sends back what it receives, a fiber for each connection, until SIGINT or SIGTERM.
// Run: echo_server [--port N] [--backend NAME]; port 0, the default, lets the kernel choose.
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <motet/motet.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace {

struct arguments {
  std::uint16_t port = 0;
  motet::options runtime;
};

arguments read_arguments(std::span<char*> words) {
  arguments result;
  for (std::size_t i = 1; i < words.size(); i += 2) {
    const std::string_view name = words[i];
    if (i + 1 == words.size()) throw std::invalid_argument(std::string(name) + " needs a value");
    const std::string_view value = words[i + 1];
    if (name == "--backend") {
      result.runtime.backend = value;
    } else if (name == "--port") {
      const auto [end, error] = std::from_chars(value.begin(), value.end(), result.port);
      if (error != std::errc() || end != value.end()) {
        throw std::invalid_argument("--port needs a number from 0 to 65535");
      }
    } else {
      throw std::invalid_argument("unknown argument " + std::string(name));
    }
  }
  return result;
}

/// Blocks SIGINT and SIGTERM for the thread; they are read as data instead.
motet::fd ending_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGINT);
  ::sigaddset(&signals, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return motet::fd(::signalfd(-1, &signals, SFD_CLOEXEC));
}

void allow_many_descriptors() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

void echo(motet::net::tcp_stream peer) {
  std::array<std::byte, 16384> buffer;
  while (const std::size_t size = peer.read(buffer)) {
    peer.write_all(std::span(buffer).first(size));
  }
}

void serve(std::uint16_t port) {
  const motet::fd signals = ending_signals();
  motet::net::tcp_listener listener(motet::net::endpoint::loopback(port));
  std::printf("listening on %s\n", listener.local_endpoint().to_string().c_str());
  std::fflush(stdout);

  motet::group server;
  const auto connections = server.spin({.name = "server"}, [&] { listener.serve(echo); });
  signalfd_siginfo signal{};
  motet::io::read(signals.get(), std::as_writable_bytes(std::span(&signal, 1)));
  std::printf("ending: %s\n", ::strsignal(static_cast<int>(signal.ssi_signo)));
  connections.cancel("the server ends");
  server.await_all();
}

}  // namespace

int main(int count, char** words) {
  try {
    const arguments options = read_arguments({words, static_cast<std::size_t>(count)});
    allow_many_descriptors();
    motet::run(options.runtime, [&] { serve(options.port); });
  } catch (const std::exception& e) {
    std::fprintf(stderr, "echo_server: %s\n", e.what());
    return 1;
  }
}
