// SPDX-License-Identifier: MIT
// Tells a monitoring system what the threads of this program do: answers each HTTP request with the
// numbers of motet::stats(), as text for Prometheus, while two other threads work. Ends by SIGINT
// or SIGTERM.
// Run: metrics [PORT | PATH]: a TCP port on loopback (0, the default, lets the kernel choose), or
// the path of a Unix socket.
// Source: prometheus.io, "Exposition formats", text format 0.0.4.
#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <motet/motet.hpp>
#include <motet/observe/stats.hpp>
#include <sstream>
#include <stop_token>
#include <string>
#include <string_view>

using namespace std::chrono_literals;

namespace {

constexpr std::size_t longest_request = 8'192;

/// One metric: its head, and then a line for each thread.
class metric {
 public:
  metric(std::ostream& output, const char* name, const char* kind, const char* help)
      : output_(output), name_(name) {
    output_ << "# HELP " << name << ' ' << help << "\n# TYPE " << name << ' ' << kind << '\n';
  }

  template <typename Number>
  void add(const std::string& labels, Number value) {
    output_ << name_ << '{' << labels << "} " << value << '\n';
  }

 private:
  std::ostream& output_;
  const char* name_;
};

std::string label_of(const motet::thread_stats& thread) {
  return thread.thread == 0 ? "thread=\"ended\""
                            : "thread=\"" + std::to_string(thread.thread) + '"';
}

/// A counter, or a gauge: one field of every thread.
struct field {
  const char *name, *kind, *help;
  std::uint64_t motet::thread_stats::* value;
};

constexpr std::array fields = {
    field{"motet_fibers", "gauge", "Fibers that are not dead.", &motet::thread_stats::fibers},
    field{"motet_runnable", "gauge", "Fibers in the run queue.", &motet::thread_stats::runnable},
    field{"motet_stacks_mapped", "gauge", "Stacks for fibers, of the default size.",
          &motet::thread_stats::stacks_mapped},
    field{"motet_stacks_resident", "gauge", "Stacks for fibers that hold memory.",
          &motet::thread_stats::stacks_resident},
    field{"motet_timers_armed", "gauge", "Sleeps and time limits.",
          &motet::thread_stats::timers_armed},
    field{"motet_fibers_spun_total", "counter", "Fibers spun.", &motet::thread_stats::spun},
    field{"motet_fibers_ended_total", "counter", "Fibers ended.", &motet::thread_stats::ended},
    field{"motet_switches_total", "counter", "Switches.", &motet::thread_stats::switches},
    field{"motet_polls_total", "counter", "Polls of the backend.", &motet::thread_stats::polls},
    field{"motet_sleeps_total", "counter", "Sleeps of the thread.", &motet::thread_stats::sleeps},
    field{"motet_mail_total", "counter", "Messages of other threads.", &motet::thread_stats::mail},
    field{"motet_timers_fired_total", "counter", "Timers fired.",
          &motet::thread_stats::timers_fired},
    field{"motet_timers_late_total", "counter", "Timers fired more than 1 ms late.",
          &motet::thread_stats::timers_late},
};

void tell_operations(std::ostream& output, const motet::process_stats& process) {
  metric operations(output, "motet_operations", "gauge", "Operations that have not ended.");
  for (const motet::thread_stats& thread : process.threads) {
    for (std::size_t i = 0; i < thread.in_flight.size(); ++i) {
      if (thread.in_flight[i] == 0) continue;
      const std::string verb(motet::name_of(static_cast<motet::verb>(i)));
      operations.add(label_of(thread) + ",verb=\"" + verb + '"', thread.in_flight[i]);
    }
  }
}

/// From 256 ns to 17 s; what is shorter or longer is in the first and the last bucket.
void tell_delays(std::ostream& output, const motet::process_stats& process) {
  const char* name = "motet_queue_delay_seconds";
  output << "# HELP " << name << " Time between runnable and running, of one in 64.\n"
         << "# TYPE " << name << " histogram\n";
  for (const motet::thread_stats& thread : process.threads) {
    const auto& buckets = thread.queue_delay.buckets;
    const std::string label = label_of(thread);
    std::uint64_t cumulative_count = 0;
    double sum = 0;
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      const double end = static_cast<double>(std::uint64_t{1} << i) * 2e-9;
      cumulative_count += buckets[i];
      sum += static_cast<double>(buckets[i]) * end * 0.75;  // the middle of the bucket
      if (i < 7 || i > 33) continue;
      output << name << "_bucket{" << label << ",le=\"" << end << "\"} " << cumulative_count
             << '\n';
    }
    output << name << "_bucket{" << label << ",le=\"+Inf\"} " << cumulative_count << '\n'
           << name << "_sum{" << label << "} " << sum << '\n'
           << name << "_count{" << label << "} " << cumulative_count << '\n';
  }
}

std::string metrics() {
  motet::process_stats process = motet::stats();
  std::ostringstream output;
  tell_delays(output, process);
  tell_operations(output, process);
  const motet::process_stats living = process;
  process.threads.push_back(process.ended);
  for (const field& column : fields) {
    metric line(output, column.name, column.kind, column.help);
    const bool counts = std::string_view(column.kind) == "counter";
    for (const auto& thread : counts ? process.threads : living.threads) {
      line.add(label_of(thread), thread.*column.value);
    }
  }
  metric asleep(output, "motet_asleep_seconds_total", "counter", "How long the thread has slept.");
  for (const motet::thread_stats& thread : process.threads) {
    asleep.add(label_of(thread), std::chrono::duration<double>(thread.asleep).count());
  }
  metric offload(output, "motet_offload", "gauge",
                 "Threads for blocking calls, and calls in line.");
  offload.add("what=\"threads\"", process.offload_threads);
  offload.add("what=\"idle\"", process.offload_idle);
  offload.add("what=\"queued\"", process.offload_queued);
  return std::move(output).str();
}

/// Whatever is asked, these numbers are the answer.
template <typename Stream>
void answer(Stream peer) {
  motet::reader<Stream> input(peer, longest_request);
  motet::writer<Stream> writer(peer);
  if (!input.until("\r\n\r\n", longest_request)) return;
  const std::string text = metrics();
  writer.write(
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nConnection: close\r\n"
      "Content-Length: " +
      std::to_string(text.size()) + "\r\n\r\n" + text);
  writer.flush();
  peer.shutdown(SHUT_WR);
}

template <typename Stream, typename Listener>
void serve(Listener listener, const std::stop_token& stop) {
  std::printf("listening on %s\n", listener.local_endpoint().to_string().c_str());
  std::fflush(stdout);
  listener.serve({.drain = stop, .grace = 2s},
                 [](Stream peer) { motet::with_timeout(5s, [&] { answer(std::move(peer)); }); });
}

/// Something to count: fibers that compute for a moment and sleep for another.
void work() {
  motet::group fibers;
  for (int i = 0; i < 10; ++i) {
    fibers.spin([] {
      for (;;) {
        motet::sleep_for(2ms);
        for (int round = 0; round < 100; ++round) motet::snooze();
      }
    });
  }
  fibers.await_all();
}

}  // namespace

int main(int count, char** words) {
  const std::string_view address = count > 1 ? words[1] : "0";
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(address.begin(), address.end(), port);
  const bool is_port = error == std::errc() && end == address.end();
  if (count > 2) {
    std::fprintf(stderr, "usage: metrics [PORT | PATH]\n");
    return 2;
  }
  try {
    return motet::run_until_signal([&](const std::stop_token& stop) {
      motet::thread busy(work), idle([] { motet::sleep(); });
      motet::stats();  // from here on they count
      namespace net = motet::net;
      if (is_port) {
        serve<net::tcp_stream>(net::tcp_listener(net::endpoint::loopback(port)), stop);
      } else {
        serve<net::unix_stream>(net::unix_listener(net::endpoint::unix_path(address)), stop);
      }
    });
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "metrics: %s\n", failure.what());
    return 1;
  }
}
