// SPDX-License-Identifier: MIT
// The load generator: one thread, C connections, at most one message in flight on each, and none on
// those that stay idle. Every echoed byte is compared. In a closed loop the next message follows an
// answer at once; at a constant rate (--rate, messages a second of all connections) it is due when
// the clock says so, and its latency counts from then, though an answer that is late holds it up:
// so no stall of the server hides the messages that it has kept from being sent. Latency is what a
// caller would see, so with many connections it includes the time a finished answer waits for its
// turn in this one thread.
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "bench_args.hpp"
#include "echo_load_parts.hpp"

namespace {

struct settings {
  double port = 0, connections = 1, idle = 0, seconds = 1, warmup = 0.3, size = 64, rate = 0,
         json = 0, server_pid = 0;
};

struct connection {
  int fd = -1;
  std::uint32_t interest = 0;
  std::uint64_t serial = 0;  // 0: still connecting
  std::size_t sent = 0;
  std::size_t received = 0;
  std::int64_t started = 0;
  std::vector<std::int64_t> held_up;  // when the messages were due that wait for an answer
};

class load {
 public:
  explicit load(const settings& chosen)
      : settings_(chosen),
        size_(static_cast<std::size_t>(chosen.size)),
        message_(size_),
        connections_(static_cast<std::size_t>(chosen.connections)) {}

  // Each connection proves with one echo that it was accepted, and only a limited number may still
  // owe that proof: so the listen backlog cannot be overrun.
  void open_all() {
    const std::int64_t deadline = bench::clock_ns() + bench::to_ns(30);
    std::size_t begun = 0;
    while (opened_ < connections_.size()) {
      while (begun < connections_.size() && begun - opened_ < 256) begin_connect(begun++);
      poll(bench::to_ns(0.1));
      if (bench::clock_ns() > deadline) {
        bench::fail("only " + std::to_string(opened_) + " connections were made within 30 s");
      }
    }
  }

  void run() {
    running_ = true;
    next_due_ = static_cast<double>(bench::clock_ns());
    next_ = first_busy();
    if (settings_.rate == 0) {
      for (std::size_t index = first_busy(); index < connections_.size(); ++index) {
        connection& each = connections_[index];
        if (each.fd >= 0) begin_message(each, bench::clock_ns());
      }
    }
    poll_until(bench::clock_ns() + bench::to_ns(settings_.warmup));
    latency_ = {};
    const double cpu = server_cpu_us();
    const std::int64_t begin = bench::clock_ns();
    poll_until(begin + bench::to_ns(settings_.seconds));
    seconds_ = static_cast<double>(bench::clock_ns() - begin) / 1e9;
    server_cpu_us_ = server_cpu_us() - cpu;
  }

  bool report() const {
    const auto requests = static_cast<double>(latency_.count());
    const std::vector<std::pair<const char*, double>> fields = {
        {"connections", settings_.connections},
        {"idle", settings_.idle},
        {"size", settings_.size},
        {"rate", settings_.rate},
        {"seconds", seconds_},
        {"requests", requests},
        {"requests_per_second", requests / seconds_},
        {"p50_us", latency_.quantile_us(0.5)},
        {"p99_us", latency_.quantile_us(0.99)},
        {"p999_us", latency_.quantile_us(0.999)},
        {"max_us", latency_.max_us()},
        {"errors", static_cast<double>(errors_)},
        {"mismatches", static_cast<double>(mismatches_)},
        {"server_cpu_us", server_cpu_us_}};
    const std::size_t shown = fields.size() - (settings_.server_pid == 0 ? 1 : 0);
    for (std::size_t i = 0; i < shown; ++i) {
      const auto& [name, value] = fields[i];
      if (settings_.json == 0) {
        std::printf("%-20s %.12g\n", name, value);
      } else {
        std::printf("%s\"%s\":%.12g", i == 0 ? "{" : ",", name, value);
      }
    }
    if (settings_.json != 0) std::printf("}\n");
    return mismatches_ == 0 && requests > 0;
  }

 private:
  void begin_connect(std::size_t index) {
    connection& each = connections_[index];
    each.fd =
        bench::check(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), "socket");
    bench::set_flag(each.fd, IPPROTO_TCP, TCP_NODELAY);
    if (connections_.size() > 28'000) {  // more than the ephemeral ports of one source address
      bench::set_flag(each.fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT);
      sockaddr_in source = bench::loopback(0);
      source.sin_addr.s_addr = htonl(INADDR_LOOPBACK + static_cast<in_addr_t>(index / 20'000));
      bench::check(bind(each.fd, reinterpret_cast<sockaddr*>(&source), sizeof source), "bind");
    }
    const sockaddr_in target = bench::loopback(static_cast<in_port_t>(settings_.port));
    const int result = connect(each.fd, reinterpret_cast<const sockaddr*>(&target), sizeof target);
    if (result < 0 && errno != EINPROGRESS) bench::check(result, "connect");
    watch(each, EPOLLOUT, EPOLL_CTL_ADD);
  }

  void finish_connect(connection& each) {
    int error = 0;
    socklen_t length = sizeof error;
    bench::check(getsockopt(each.fd, SOL_SOCKET, SO_ERROR, &error, &length), "getsockopt");
    if (error != 0) bench::fail(std::string("connect: ") + std::strerror(error));
    begin_message(each, bench::clock_ns());
  }

  void begin_message(connection& each, std::int64_t now) {
    each.serial = ++serial_;
    each.sent = each.received = 0;
    each.started = now;
    send_rest(each);
  }

  void send_rest(connection& each) {
    const char* const bytes = message_.stamped(each.serial);
    const ssize_t sent = send(each.fd, bytes + each.sent, size_ - each.sent, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) return drop(each, errors_);
    each.sent += static_cast<std::size_t>(std::max<ssize_t>(sent, 0));
    const std::uint32_t interest = each.sent < size_ ? EPOLLIN | EPOLLOUT : EPOLLIN;
    if (interest != each.interest) watch(each, interest, EPOLL_CTL_MOD);
  }

  void receive(connection& each) {
    const ssize_t got = recv(each.fd, buffer_.data(), buffer_.size(), 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return drop(each, errors_);
    const auto size = static_cast<std::size_t>(got);
    const char* const expected = message_.stamped(each.serial) + each.received;
    if (size > each.sent - each.received || std::memcmp(buffer_.data(), expected, size) != 0) {
      return drop(each, mismatches_);
    }
    each.received += size;
    if (each.received < size_) return;
    const std::int64_t now = bench::clock_ns();
    latency_.add(static_cast<std::uint64_t>(now - each.started));
    if (!running_) {
      ++opened_;
    } else if (settings_.rate == 0) {
      begin_message(each, now);
    } else if (!each.held_up.empty()) {
      begin_message(each, each.held_up.front());
      each.held_up.erase(each.held_up.begin());
    }
  }

  std::size_t first_busy() const { return static_cast<std::size_t>(settings_.idle); }

  // At a constant rate: begins what is due, on one connection after the other.
  void begin_due() {
    for (const auto now = static_cast<double>(bench::clock_ns()); next_due_ <= now;
         next_due_ += 1e9 / settings_.rate) {
      connection& each = connections_[next_];
      const auto due = static_cast<std::int64_t>(next_due_);
      if (each.fd >= 0 && each.received == size_) {
        begin_message(each, due);
      } else if (each.fd >= 0) {
        each.held_up.push_back(due);
      }
      if (++next_ == connections_.size()) next_ = first_busy();
    }
  }

  void drop(connection& each, std::uint64_t& reason) {
    ++reason;
    ++dropped_;
    if (!running_) ++opened_;
    close(std::exchange(each.fd, -1));
  }

  void watch(connection& each, std::uint32_t interest, int operation) {
    each.interest = interest;
    epoll_event event{};
    event.events = interest;
    event.data.ptr = &each;
    bench::check(epoll_ctl(epoll_, operation, each.fd, &event), "epoll_ctl");
  }

  void poll(std::int64_t limit_ns) {
    std::array<epoll_event, 512> events;
    int limit_ms = static_cast<int>(std::min(limit_ns / 1'000'000 + 1, std::int64_t{100}));
    if (running_ && settings_.rate != 0) limit_ms = 0;  // the next message is due too soon to sleep
    const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), limit_ms);
    if (count < 0 && errno != EINTR) bench::check(count, "epoll_wait");
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      connection& each = *static_cast<connection*>(event.data.ptr);
      if (each.serial == 0) {
        finish_connect(each);
        continue;
      }
      if ((event.events & EPOLLOUT) != 0 && each.sent < size_) send_rest(each);
      if ((event.events & ~std::uint32_t{EPOLLOUT}) != 0 && each.fd >= 0) receive(each);
    }
  }

  void poll_until(std::int64_t end) {
    while (dropped_ < connections_.size()) {
      const std::int64_t left = end - bench::clock_ns();
      if (left <= 0) return;
      if (settings_.rate != 0) begin_due();
      poll(left);
    }
  }

  // The server process's own CPU clock: nanoseconds, all its threads, past ones included.
  double server_cpu_us() const {
    if (settings_.server_pid == 0) return 0;
    clockid_t clock{};
    if (clock_getcpuclockid(static_cast<pid_t>(settings_.server_pid), &clock) != 0) {
      bench::fail("--server-pid: no such process");
    }
    return static_cast<double>(bench::clock_ns(clock)) / 1e3;
  }

  settings settings_;
  std::size_t size_;
  bench::message message_;
  std::vector<connection> connections_;
  int epoll_ = bench::check(epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
  std::array<char, 64 * 1024> buffer_;
  bench::latency_histogram latency_;
  std::uint64_t serial_ = 0, errors_ = 0, mismatches_ = 0;
  std::size_t opened_ = 0, dropped_ = 0;
  double next_due_ = 0;
  std::size_t next_ = 0;
  bool running_ = false;
  double seconds_ = 0, server_cpu_us_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  settings chosen;
  bench::parse_options(argc, argv,
                       {{"--port", &chosen.port, 1, 65535},
                        {"--connections", &chosen.connections, 1, 100'000},
                        {"--idle", &chosen.idle, 0, 100'000},
                        {"--seconds", &chosen.seconds, 0.01, 600},
                        {"--warmup", &chosen.warmup, 0, 60},
                        {"--size", &chosen.size, 1, 16 << 20},
                        {"--rate", &chosen.rate, 1, 1e7},
                        {"--server-pid", &chosen.server_pid, 1, 1 << 30},
                        {"--json", &chosen.json, 1, 0}});
  if (chosen.port == 0) bench::fail("--port is needed");
  if (chosen.idle >= chosen.connections) bench::fail("all connections are to be idle");
  const double descriptors = static_cast<double>(bench::raise_file_limit());
  if (descriptors < chosen.connections + 16) {
    bench::fail("too many connections for the limit on open files (ulimit -Hn is " +
                std::to_string(static_cast<long>(descriptors)) + ")");
  }
  load generator(chosen);
  generator.open_all();
  generator.run();
  return generator.report() ? 0 : 1;
}
