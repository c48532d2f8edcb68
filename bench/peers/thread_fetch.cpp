// SPDX-License-Identifier: MIT
// What examples/cached_fetch does, as one writes it with a thread for each request: sockets that
// block, a mutex round the caches, and the user interface told through its queue. Nobody can cancel
// one of these, nor has any a time limit; so this is the least that threads can do.
//
// usage: thread_fetch --load N --in-flight K --port P --cache-dir DIR
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "../../examples/cached_fetch/stores.hpp"
#include "../../examples/cached_fetch/ui_loop.hpp"

namespace {

using steady = std::chrono::steady_clock;

struct options {
  int requests = 0;
  int in_flight = 0;
  std::uint16_t port = 0;
  std::string directory;
};

options parse(int count, char** words) {
  options all;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string_view word = words[i];
    if (word == "--load") all.requests = std::atoi(words[i + 1]);
    if (word == "--in-flight") all.in_flight = std::atoi(words[i + 1]);
    if (word == "--port") all.port = static_cast<std::uint16_t>(std::atoi(words[i + 1]));
    if (word == "--cache-dir") all.directory = words[i + 1];
  }
  if (all.requests <= 0 || all.in_flight <= 0 || all.port == 0 || all.directory.empty()) {
    throw std::invalid_argument(
        "usage: thread_fetch --load N --in-flight K --port P --cache-dir D");
  }
  return all;
}

[[noreturn]] void throw_errno(const char* call) {
  throw std::system_error(errno, std::system_category(), call);
}

class connection {
 public:
  explicit connection(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (socket_ < 0) throw_errno("socket");
    const int on = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(port);
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto* address = reinterpret_cast<const sockaddr*>(&where);
    if (::connect(socket_, address, sizeof where) != 0) {
      ::close(socket_);
      throw_errno("connect");
    }
  }
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;
  ~connection() { ::close(socket_); }

  void send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t size = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
      if (size < 0) throw_errno("send");
      text.remove_prefix(static_cast<std::size_t>(size));
    }
  }
  void receive(char* text, std::size_t size) {
    while (size > 0) {
      const ssize_t more = ::recv(socket_, text, size, 0);
      if (more < 0) throw_errno("recv");
      if (more == 0) throw std::runtime_error("eof");
      text += more;
      size -= static_cast<std::size_t>(more);
    }
  }

 private:
  int socket_;
};

std::string fetch(const std::string& key, std::uint16_t port) {
  connection server(port);
  server.send(static_cast<char>(key.size()) + key);
  unsigned char length = 0;
  server.receive(reinterpret_cast<char*>(&length), 1);
  std::string value(length, '\0');
  server.receive(value.data(), length);
  return value;
}

class fetcher {
 public:
  explicit fetcher(const options& all)
      : port_(all.port), disk_(all.directory), room_(all.in_flight) {}

  /// One request, on a thread of its own.
  void handle(const std::string& key, steady::time_point asked_at) {
    std::string value = obtain(key);
    ui_.post([this, asked_at, value = std::move(value)] {
      if (value.ends_with(" world!")) {
        latencies_.push_back(std::chrono::duration<double, std::micro>(steady::now() - asked_at));
      }
      room_.release();
    });
  }

  void load(int requests, int in_flight) {
    for (int i = 0; i < requests; ++i) {
      room_.acquire();
      std::thread([this, key = "key " + std::to_string(i), now = steady::now()] {
        handle(key, now);
      }).detach();
    }
    for (int i = 0; i < in_flight; ++i) room_.acquire();
  }

  /// To be called when all are over.
  std::vector<std::chrono::duration<double, std::micro>> take_latencies() {
    ui_.close();
    return std::move(latencies_);
  }

 private:
  std::string obtain(const std::string& key) {
    {
      const std::lock_guard in(memory_mutex_);
      if (auto hit = memory_.get(key)) return *std::move(hit);
    }
    {
      const std::lock_guard in(disk_mutex_);
      if (auto hit = disk_.get(key)) return *std::move(hit);
    }
    std::string value = fetch(key, port_);
    {
      const std::lock_guard in(memory_mutex_);
      memory_.set(key, value);
    }
    {
      const std::lock_guard in(disk_mutex_);
      disk_.set(key, value);
    }
    return value;
  }

  const std::uint16_t port_;
  std::mutex memory_mutex_;
  cached_fetch::memory_store memory_;
  std::mutex disk_mutex_;
  cached_fetch::disk_store disk_;
  std::counting_semaphore<> room_;
  std::vector<std::chrono::duration<double, std::micro>> latencies_;  // the user interface's
  cached_fetch::ui_loop ui_;
};

}  // namespace

int main(int count, char** words) {
  try {
    const options all = parse(count, words);
    fetcher& here = *new fetcher(all);  // for good: the last thread may still be on its way out
    const auto begin = steady::now();
    here.load(all.requests, all.in_flight);
    const std::chrono::duration<double> seconds = steady::now() - begin;
    auto latencies = here.take_latencies();
    if (latencies.size() != static_cast<std::size_t>(all.requests)) {
      throw std::runtime_error("not all have been answered");
    }
    std::sort(latencies.begin(), latencies.end());
    const auto share = [&](std::size_t percent) {
      return latencies[(latencies.size() - 1) * percent / 100].count();
    };
    std::printf(
        "{\"requests\":%zu,\"seconds\":%g,\"requests_per_second\":%g,\"p50_us\":%g,\"p99_us\":%g}"
        "\n",
        latencies.size(), seconds.count(), static_cast<double>(latencies.size()) / seconds.count(),
        share(50), share(99));
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "thread_fetch: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
