// SPDX-License-Identifier: MIT
// TLS over loopback: how much goes through one connection, and how many handshakes a second there
// are, by motet and by a bare loop of OpenSSL on blocking sockets. Client and server have a thread
// each.
//
// usage: tls_bench bulk|handshakes motet|bare CHAIN KEY TRUSTED COUNT [BYTES]
//   bulk: COUNT writes of BYTES; prints MB/s and processor seconds a GB
//   handshakes: COUNT connections, none resumed; prints handshakes/s and processor microseconds
//   each
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <motet/motet.hpp>
#include <motet/tls.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

struct task {
  std::string chain, key, trusted;
  std::size_t count = 0;
  std::size_t bytes = 0;
};

void require(bool good) {
  if (!good) throw std::runtime_error("it did not work");
}

double processor_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

struct ends {
  int client;
  int server;
};

ends connected() {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* address = reinterpret_cast<sockaddr*>(&name);
  socklen_t size = sizeof name;
  require(::bind(listener, address, size) == 0 && ::listen(listener, 1) == 0 &&
          ::getsockname(listener, address, &size) == 0);
  const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  require(::connect(client, address, size) == 0);
  const int server = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  require(server >= 0);
  ::close(listener);
  for (const int each : {client, server}) {
    const int on = 1;
    ::setsockopt(each, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  return {client, server};
}

/// Bare: with all that makes OpenSSL quicker on a socket.
SSL_CTX* bare_context(const task& what, bool serves) {
  SSL_CTX* made = SSL_CTX_new(serves ? TLS_server_method() : TLS_client_method());
  SSL_CTX_set_read_ahead(made, 1);
  SSL_CTX_set_default_read_buffer_len(made, 64 * 1024);
  if (serves) {
    require(SSL_CTX_use_certificate_chain_file(made, what.chain.c_str()) == 1);
    require(SSL_CTX_use_PrivateKey_file(made, what.key.c_str(), SSL_FILETYPE_PEM) == 1);
    SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_OFF);
  } else {
    require(SSL_CTX_load_verify_file(made, what.trusted.c_str()) == 1);
    SSL_CTX_set_verify(made, SSL_VERIFY_PEER, nullptr);
  }
  return made;
}

SSL* bare_client(SSL_CTX* by, int socket) {
  SSL* made = SSL_new(by);
  SSL_set_fd(made, socket);
  SSL_set1_host(made, "example.test");
  SSL_ctrl(made, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
           const_cast<char*>("example.test"));
  require(SSL_connect(made) == 1);
  return made;
}

SSL* bare_server(SSL_CTX* by, int socket) {
  SSL* made = SSL_new(by);
  SSL_set_fd(made, socket);
  require(SSL_accept(made) == 1);
  return made;
}

void drop(SSL* one, int socket) {
  SSL_free(one);
  ::close(socket);
}

void bare_bulk(const task& what) {
  const ends two = connected();
  std::thread server([&] {
    SSL* peer = bare_server(bare_context(what, true), two.server);
    std::vector<char> buffer(64 * 1024);
    std::size_t got = 0;
    for (int size = 1; size > 0; got += static_cast<std::size_t>(std::max(size, 0))) {
      size = SSL_read(peer, buffer.data(), static_cast<int>(buffer.size()));
    }
    require(got == what.count * what.bytes);
  });
  SSL* peer = bare_client(bare_context(what, false), two.client);
  const std::vector<char> piece(what.bytes, 'x');
  for (std::size_t n = 0; n < what.count; ++n) {
    require(SSL_write(peer, piece.data(), static_cast<int>(piece.size())) > 0);
  }
  SSL_shutdown(peer);
  server.join();
}

void motet_bulk(const task& what) {
  const ends two = connected();
  const motet::tls::server_context mine({.certificates = {{what.chain, what.key}}});
  const motet::tls::client_context trusted({.trusted_file = what.trusted});
  std::thread server([&] {
    motet::run([&] {
      auto peer = motet::tls::stream::accept(motet::net::tcp_stream(motet::fd(two.server)), mine);
      std::vector<std::byte> buffer(64 * 1024);
      std::size_t got = 0;
      while (const std::size_t size = peer.read(buffer)) got += size;
      require(got == what.count * what.bytes);
    });
  });
  auto peer = motet::tls::stream::connect(motet::net::tcp_stream(motet::fd(two.client)), trusted,
                                          "example.test");
  const std::vector<std::byte> piece(what.bytes);
  for (std::size_t n = 0; n < what.count; ++n) peer.write_all(piece);
  peer.shutdown(SHUT_WR);
  server.join();
}

void bare_handshakes(const task& what) {
  std::vector<ends> all;
  for (std::size_t n = 0; n < what.count; ++n) all.push_back(connected());
  std::thread server([&] {
    SSL_CTX* by = bare_context(what, true);
    for (const ends& each : all) drop(bare_server(by, each.server), each.server);
  });
  SSL_CTX* by = bare_context(what, false);
  for (const ends& each : all) drop(bare_client(by, each.client), each.client);
  server.join();
}

void motet_handshakes(const task& what) {
  std::vector<ends> all;
  for (std::size_t n = 0; n < what.count; ++n) all.push_back(connected());
  const motet::tls::server_context mine({.certificates = {{what.chain, what.key}}});
  const motet::tls::client_context trusted({.trusted_file = what.trusted});
  std::thread server([&] {
    motet::run([&] {
      for (const ends& each : all) {
        motet::tls::stream::accept(motet::net::tcp_stream(motet::fd(each.server)), mine);
      }
    });
  });
  for (const ends& each : all) {
    motet::tls::stream::connect(motet::net::tcp_stream(motet::fd(each.client)), trusted,
                                "example.test");
  }
  server.join();
}

}  // namespace

int main(int count, char** words) {
  if (count < 7) {
    std::fprintf(stderr,
                 "usage: tls_bench bulk|handshakes motet|bare CHAIN KEY TRUSTED COUNT [BYTES]\n");
    return 2;
  }
  std::signal(SIGPIPE, SIG_IGN);  // a client may be gone before its tickets come
  const std::string_view kind = words[1];
  const bool bare = std::string_view(words[2]) == "bare";
  const task what{words[3], words[4], words[5], std::strtoul(words[6], nullptr, 10),
                  count > 7 ? std::strtoul(words[7], nullptr, 10) : 0};
  const auto begun = std::chrono::steady_clock::now();
  const double used = processor_seconds();
  if (kind == "bulk") {
    bare ? bare_bulk(what) : motet_bulk(what);
  } else {
    bare ? bare_handshakes(what) : motet_handshakes(what);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  const double processor = processor_seconds() - used;
  const auto number = static_cast<double>(what.count);
  const double bytes = number * static_cast<double>(what.bytes);
  if (kind == "bulk") {
    std::printf("%.1f %.4f\n", bytes / took.count() / 1e6, processor / bytes * 1e9);
  } else {
    std::printf("%.1f %.4f\n", number / took.count(), processor / number * 1e6);
  }
}
