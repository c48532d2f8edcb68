// SPDX-License-Identifier: MIT
// Copies from stream to stream, by every way there is, and streams that are joined.
#include <fcntl.h>

#include <array>
#include <cerrno>
#include <motet/motet.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/faults.hpp"
#include "catch.hpp"
#include "fixtures.hpp"
#include "io/scratch.hpp"
#include "io/scripted_stream.hpp"
#include "io/streams.hpp"
#include "sockets.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using net::tcp_listener;
using net::tcp_stream;
using net::unix_stream;
using testing::error_of;
using testing::oops;
using testing::scratch_name;
using testing::scripted_stream;
using testing::text_of;
using testing::until_waiting;

namespace {

/// A text whose every part says where it is.
std::string numbered(std::size_t size) {
  std::string text;
  for (std::size_t i = 0; text.size() < size; ++i) text += std::to_string(i) + ' ';
  text.resize(size);
  return text;
}

template <typename Stream>
std::string all_of(Stream& source) {
  std::string text;
  std::vector<std::byte> room(65'536);
  while (const std::size_t size = source.read(room)) {
    text += text_of(std::span(room).first(size));
    if (text.size() % 3 == 0) snooze();
  }
  return text;
}

/// One end connects, the other is accepted, which are in different modes.
std::pair<tcp_stream, tcp_stream> tcp_pair() {
  tcp_listener listener(net::endpoint::loopback(0));
  auto acceptor = spin([&] { return listener.accept(); });
  tcp_stream client = tcp_stream::connect(listener.local_endpoint());
  tcp_stream server = std::move(acceptor).await();
  return std::pair(std::move(client), std::move(server));
}

/// Copies `text` from a source that a fiber fills to a target that a fiber empties.
template <typename From, typename To>
void check_copy(From& source, From& read_end, To& write_end, To& target, const std::string& text) {
  auto filler = spin([&] {
    source.write_all(text);
    source.shutdown(SHUT_WR);
  });
  auto drainer = spin([&] { return all_of(target); });
  CHECK(copy(read_end, write_end) == text.size());
  write_end.shutdown(SHUT_WR);
  CHECK(drainer.await() == text);
  filler.await();
}

}  // namespace

TEST_CASE("copy() between sockets and pipes of all kinds copies all", "[copy]") {
  run([] {
    for (const std::size_t size : {0, 1, 70'000, 3'000'000}) {
      const std::string text = numbered(size);
      auto [tcp, tcp_far] = tcp_pair();
      auto [outlet, outlet_far] = tcp_pair();
      check_copy(tcp, tcp_far, outlet, outlet_far, text);
      auto [local, local_far] = net::stream_pair();
      auto [next, next_far] = tcp_pair();
      check_copy(local, local_far, next_far, next, text);
      motet::pipe pipe = motet::pipe::open();
      auto [last, last_far] = net::stream_pair();
      check_copy(pipe, pipe, last, last_far, text);
      scripted_stream script(size == 0 ? std::vector<std::string>() : std::vector{text, text});
      motet::pipe end = motet::pipe::open();
      auto drainer = spin([&] { return all_of(end); });
      CHECK(copy(script, end) == 2 * size);
      end.shutdown(SHUT_WR);
      CHECK(drainer.await() == text + text);
    }
  });
}

TEST_CASE("copy() copies from a file, to a file and to other streams", "[copy]") {
  run([] {
    const scratch_name first;
    const scratch_name second;
    for (const std::size_t size : {0, 5, 200'000}) {
      const std::string text = numbered(size);
      file source = file::open(first, O_RDWR | O_CREAT | O_TRUNC);
      source.write_all(text);
      source.seek(0);
      for (const int append : {0, O_APPEND}) {
        source.seek(0);
        file target = file::open(second, O_RDWR | O_CREAT | O_TRUNC | append);
        target.write_all("head ");
        CHECK(copy(source, target) == size);
        target.write_all(" tail");
        target.seek(0);
        CHECK(all_of(target) == "head " + text + " tail");
      }
      source.seek(0);
      scripted_stream script;
      CHECK(copy(source, script) == size);
      CHECK(script.written() == text);
      CHECK_FALSE(script.ended);
      source.seek(0);
      auto ends = tcp_pair();
      auto& [client, server] = ends;
      auto drainer = spin([&ends] { return all_of(ends.second); });
      CHECK(copy(source, client) == size);
      client.shutdown(SHUT_WR);
      CHECK(drainer.await() == text);
    }
    file odd = file::open("/proc/self/status");
    file target = file::open(second, O_RDWR | O_TRUNC);
    CHECK(copy(odd, target) > 100);
  });
}

#if defined(MOTET_FAULTS)
namespace {

struct refusal {
  std::string_view call;
  int error;
  int successes;  // so many calls that are not refused
  int times;
};
refusal planned;
int calls_seen;

int refuse_as_planned(const char* call) noexcept {
  if (std::string_view(call) != planned.call) return 0;
  const int number = calls_seen++ - planned.successes;
  return number >= 0 && number < planned.times ? planned.error : 0;
}

void plan(const refusal& next) {
  planned = next;
  calls_seen = 0;
  detail::faults::choose = refuse_as_planned;
}

}  // namespace

TEST_CASE("copy() copies by hand if the kernel refuses to", "[copy]") {
  run([] {
    const std::string text = numbered(300'000);
    constexpr int always = 1'000'000;
    for (const refusal& entry : {refusal{"splice", EINVAL, 0, always},
                                 {"splice", EINVAL, 1, always},
                                 {"splice", ENOSYS, 4, always},
                                 {"splice", EINTR, 1, 3},
                                 {"pipe2", EMFILE, 0, always}}) {
      INFO(entry.call << ' ' << entry.error << ' ' << entry.successes);
      auto [tcp, tcp_far] = tcp_pair();
      auto [outlet, outlet_far] = tcp_pair();
      plan(entry);
      check_copy(tcp, tcp_far, outlet, outlet_far, text);
      CHECK(calls_seen > entry.successes);
      detail::faults::choose = nullptr;
    }
    const scratch_name first;
    const scratch_name second;
    file source = file::open(first, O_RDWR | O_CREAT);
    source.write_all(text);
    source.seek(0);
    file target = file::open(second, O_RDWR | O_CREAT);
    plan({"copy_file_range", EXDEV, 0, always});
    CHECK(copy(source, target) == text.size());
    source.seek(0);
    plan({"copy_file_range", ENOSPC, 0, always});
    CHECK(error_of([&] { copy(source, target); }) == std::errc::no_space_on_device);
    detail::faults::choose = nullptr;
    target.seek(0);
    CHECK(all_of(target) == text);
  });
}
#endif

TEST_CASE("copy() ends by an interruption, a reset and a close, and keeps no turn", "[copy]") {
  run([] {
    const std::size_t descriptors = testing::open_descriptors();
    {
      auto [tcp, tcp_far] = tcp_pair();
      auto [outlet, outlet_far] = tcp_pair();
      const auto go = [&, &source = tcp_far, &target = outlet] { copy(source, target); };
      CHECK_FALSE(move_on_after(1ms, go));
      auto raised = spin(go);
      until_waiting(raised);
      CHECK(raised.raise(oops()));
      CHECK_THROWS_AS(raised.await(), oops);
      tcp.write_all("still");
      CHECK(testing::read_text(tcp_far) == "still");
      auto full = spin(go);
      auto filler = spin([&sink = tcp] {
        const std::string text(10'000'000, 'x');
        sink.write_all(text);
      });
      until_waiting(full);
      sleep_for(20ms);
      CHECK(full.state() != fiber_state::dead);
      full.cancel();
      CHECK_THROWS_AS(full.await(), fiber_cancelled);
      filler.cancel();
      auto third = spin([&] { return error_of(go); });
      sleep_for(1ms);
      outlet.close();
      CHECK(third.await() == std::errc::bad_file_descriptor);
    }
    {
      auto [tcp, tcp_far] = tcp_pair();
      auto [outlet, outlet_far] = tcp_pair();
      testing::reset_when_closed(tcp);
      auto reset = spin([&, &source = tcp_far, &target = outlet] {
        return error_of([&] { copy(source, target); });
      });
      until_waiting(reset);
      tcp.close();
      CHECK(reset.await() == std::errc::connection_reset);
      auto second = spin([&, &source = outlet_far, &target = outlet] {
        return error_of([&] { copy(source, target); });
      });
      until_waiting(second);
      second.cancel();
    }
    CHECK(testing::open_descriptors() == descriptors);
  });
}

TEST_CASE("proxy() passes both directions, and half-closes each when it ends", "[proxy]") {
  run([] {
    auto [client, front] = tcp_pair();
    auto [back, server] = tcp_pair();
    auto bridge = spin([&a = front, &b = back] { return proxy(a, b); });
    client.write_all("question");
    CHECK(testing::read_text(server) == "question");
    client.shutdown(SHUT_WR);
    CHECK(testing::read_text(server) == "");
    server.write_all("a long answer");
    CHECK(testing::read_text(client) == "a long answer");
    CHECK(bridge.state() != fiber_state::dead);
    server.close();
    CHECK(testing::read_text(client) == "");
    const proxied counts = bridge.await();
    CHECK(counts.forth == 8);
    CHECK(counts.back == 13);
  });
}

TEST_CASE("proxy() throws timed_out when nothing has come for its limit", "[proxy]") {
  run([] {
    auto [client, front] = net::stream_pair();
    auto [back, server] = net::stream_pair();
    auto bridge = spin([&a = front, &b = back] { proxy(a, b, 40ms); });
    const auto start = clock::now();
    for (int i = 0; i < 6; ++i) {
      sleep_for(15ms);
      (i % 2 == 0 ? client : server).write_all("x");
    }
    CHECK_THROWS_AS(bridge.await(), timed_out);
    CHECK(clock::now() - start >= 130ms);
  });
}

TEST_CASE("proxy() that throws has counted what it moved", "[proxy]") {
  run([] {
    auto [client, front] = net::stream_pair();
    auto [back, server] = net::stream_pair();
    proxied counts;
    auto bridge = spin([&, &a = front, &b = back] { proxy(a, b, 1h, counts); });
    client.write_all("question");
    CHECK(testing::read_text(server.native_handle()) == "question");
    server.write_all("an answer");
    CHECK(testing::read_text(client.native_handle()) == "an answer");
    bridge.cancel();
    CHECK_THROWS_AS(bridge.await(), fiber_cancelled);
    CHECK(counts.forth == 8);
    CHECK(counts.back == 9);
  });
}

TEST_CASE("proxy() counts what has been written, not what has been read", "[proxy]") {
  run([] {
    auto [client, front] = net::stream_pair();
    auto [back, server] = net::stream_pair();
    proxied counts;
    auto bridge = spin([&, &a = front, &b = back] { proxy(a, b, 1h, counts); });
    auto sender = spin([&c = client] { c.write_all(std::string(8 << 20, 'x')); });
    std::uint64_t arrived = testing::read_text(server.native_handle()).size();
    for (int i = 0; i < 200; ++i) snooze();  // all buffers get full
    bridge.cancel();
    CHECK_THROWS_AS(bridge.await(), fiber_cancelled);
    back.shutdown(SHUT_WR);
    while (const std::size_t part = testing::read_text(server.native_handle(), 65'536).size())
      arrived += part;
    CHECK(counts.forth == arrived);
    sender.cancel();
    CHECK_THROWS_AS(sender.await(), fiber_cancelled);
  });
}

TEST_CASE("proxy() ends both directions when one fails", "[proxy]") {
  run([] {
    auto [client, front] = tcp_pair();
    auto [back, server] = tcp_pair();
    auto bridge = spin([&a = front, &b = back] { return error_of([&] { proxy(a, b); }); });
    until_waiting(bridge);
    testing::reset_when_closed(server);
    server.close();
    CHECK(bridge.await() == std::errc::connection_reset);
  });
}

TEST_CASE("proxy() joins a stream and a pair of pipes", "[proxy]") {
  run([] {
    motet::pipe forth = motet::pipe::open();
    motet::pipe back = motet::pipe::open();
    motet::pipe process(forth.release(SHUT_RD), back.release(SHUT_WR));
    motet::pipe console(back.release(SHUT_RD), forth.release(SHUT_WR));
    auto [user, line] = net::stream_pair();
    auto bridge = spin([&, &l = line] { return proxy(l, console); });
    auto echo = spin([&] {
      copy(process, process);
      process.shutdown(SHUT_WR);
    });
    user.write_all("hello");
    user.shutdown(SHUT_WR);
    CHECK(all_of(user) == "hello");
    CHECK(bridge.await().back == 5);
    echo.await();
  });
}
