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
std::string all_of(Stream& from) {
  std::string all;
  std::vector<std::byte> room(65'536);
  while (const std::size_t size = from.read(room)) {
    all += text_of(std::span(room).first(size));
    if (all.size() % 3 == 0) snooze();
  }
  return all;
}

/// One end connects, the other is accepted, which are in different modes.
std::pair<tcp_stream, tcp_stream> tcp_pair() {
  tcp_listener listener(net::endpoint::loopback(0));
  auto accepting = spin([&] { return listener.accept(); });
  tcp_stream near = tcp_stream::connect(listener.local_endpoint());
  tcp_stream far = std::move(accepting).await();
  return std::pair(std::move(near), std::move(far));
}

/// Copies `text` from a source that a fiber fills to a target that a fiber empties.
template <typename From, typename To>
void check_copy(From& source, From& read_end, To& write_end, To& target, const std::string& text) {
  auto filling = spin([&] {
    source.write_all(text);
    source.shutdown(SHUT_WR);
  });
  auto emptying = spin([&] { return all_of(target); });
  CHECK(copy(read_end, write_end) == text.size());
  write_end.shutdown(SHUT_WR);
  CHECK(emptying.await() == text);
  filling.await();
}

}  // namespace

TEST_CASE("a copy between sockets and pipes of all kinds is whole", "[copy]") {
  run([] {
    for (const std::size_t size : {0, 1, 70'000, 3'000'000}) {
      const std::string text = numbered(size);
      auto [tcp, tcp_far] = tcp_pair();
      auto [back, back_far] = tcp_pair();
      check_copy(tcp, tcp_far, back, back_far, text);
      auto [local, local_far] = net::stream_pair();
      auto [other, other_far] = tcp_pair();
      check_copy(local, local_far, other_far, other, text);
      motet::pipe through = motet::pipe::open();
      auto [last, last_far] = net::stream_pair();
      check_copy(through, through, last, last_far, text);
      scripted_stream script(size == 0 ? std::vector<std::string>() : std::vector{text, text});
      motet::pipe end = motet::pipe::open();
      auto emptying = spin([&] { return all_of(end); });
      CHECK(copy(script, end) == 2 * size);
      end.shutdown(SHUT_WR);
      CHECK(emptying.await() == text + text);
    }
  });
}

TEST_CASE("a copy of a file, to a file and elsewhere", "[copy]") {
  run([] {
    const scratch_name first;
    const scratch_name second;
    for (const std::size_t size : {0, 5, 200'000}) {
      const std::string text = numbered(size);
      file from = file::open(first, O_RDWR | O_CREAT | O_TRUNC);
      from.write_all(text);
      from.seek(0);
      for (const int append : {0, O_APPEND}) {
        from.seek(0);
        file to = file::open(second, O_RDWR | O_CREAT | O_TRUNC | append);
        to.write_all("head ");
        CHECK(copy(from, to) == size);
        to.write_all(" tail");
        to.seek(0);
        CHECK(all_of(to) == "head " + text + " tail");
      }
      from.seek(0);
      scripted_stream script;
      CHECK(copy(from, script) == size);
      CHECK(script.written() == text);
      CHECK_FALSE(script.ended);
      from.seek(0);
      auto ends = tcp_pair();
      auto& [near, far] = ends;
      auto emptying = spin([&ends] { return all_of(ends.second); });
      CHECK(copy(from, near) == size);
      near.shutdown(SHUT_WR);
      CHECK(emptying.await() == text);
    }
    file odd = file::open("/proc/self/status");
    file to = file::open(second, O_RDWR | O_TRUNC);
    CHECK(copy(odd, to) > 100);
  });
}

#if defined(MOTET_FAULTS)
namespace {

struct refusal {
  std::string_view call;
  int error;
  int after;  // so many calls that are not refused
  int times;
};
refusal planned;
int calls_seen;

int refuse_as_planned(const char* call) noexcept {
  if (std::string_view(call) != planned.call) return 0;
  const int number = calls_seen++ - planned.after;
  return number >= 0 && number < planned.times ? planned.error : 0;
}

void plan(const refusal& next) {
  planned = next;
  calls_seen = 0;
  detail::faults::choose = refuse_as_planned;
}

}  // namespace

TEST_CASE("a copy that the kernel refuses to make is made by hand", "[copy]") {
  run([] {
    const std::string text = numbered(300'000);
    constexpr int always = 1'000'000;
    for (const refusal& each : {refusal{"splice", EINVAL, 0, always},
                                {"splice", EINVAL, 1, always},
                                {"splice", ENOSYS, 4, always},
                                {"splice", EINTR, 1, 3},
                                {"pipe2", EMFILE, 0, always}}) {
      INFO(each.call << ' ' << each.error << ' ' << each.after);
      auto [tcp, tcp_far] = tcp_pair();
      auto [back, back_far] = tcp_pair();
      plan(each);
      check_copy(tcp, tcp_far, back, back_far, text);
      CHECK(calls_seen > each.after);
      detail::faults::choose = nullptr;
    }
    const scratch_name first;
    const scratch_name second;
    file from = file::open(first, O_RDWR | O_CREAT);
    from.write_all(text);
    from.seek(0);
    file to = file::open(second, O_RDWR | O_CREAT);
    plan({"copy_file_range", EXDEV, 0, always});
    CHECK(copy(from, to) == text.size());
    from.seek(0);
    plan({"copy_file_range", ENOSPC, 0, always});
    CHECK(error_of([&] { copy(from, to); }) == std::errc::no_space_on_device);
    detail::faults::choose = nullptr;
    to.seek(0);
    CHECK(all_of(to) == text);
  });
}
#endif

TEST_CASE("a copy ends by an interruption, a reset and a close, and holds no turn", "[copy]") {
  run([] {
    const std::size_t before = testing::open_descriptors();
    {
      auto [tcp, tcp_far] = tcp_pair();
      auto [back, back_far] = tcp_pair();
      const auto go = [&, &in = tcp_far, &out = back] { copy(in, out); };
      CHECK_FALSE(move_on_after(1ms, go));
      auto raised = spin(go);
      until_waiting(raised);
      CHECK(raised.raise(oops()));
      CHECK_THROWS_AS(raised.await(), oops);
      tcp.write_all("still");
      CHECK(testing::read_text(tcp_far) == "still");
      auto full = spin(go);
      auto filling = spin([&in = tcp] {
        const std::string text(10'000'000, 'x');
        in.write_all(text);
      });
      until_waiting(full);
      sleep_for(20ms);
      CHECK(full.state() != fiber_state::dead);
      full.cancel();
      CHECK_THROWS_AS(full.await(), fiber_cancelled);
      filling.cancel();
      auto closed = spin([&] { return error_of(go); });
      sleep_for(1ms);
      back.close();
      CHECK(closed.await() == std::errc::bad_file_descriptor);
    }
    {
      auto [tcp, tcp_far] = tcp_pair();
      auto [back, back_far] = tcp_pair();
      testing::reset_when_closed(tcp);
      auto reset =
          spin([&, &in = tcp_far, &out = back] { return error_of([&] { copy(in, out); }); });
      until_waiting(reset);
      tcp.close();
      CHECK(reset.await() == std::errc::connection_reset);
      auto broken =
          spin([&, &in = back_far, &out = back] { return error_of([&] { copy(in, out); }); });
      until_waiting(broken);
      broken.cancel();
    }
    CHECK(testing::open_descriptors() == before);
  });
}

TEST_CASE("a proxy passes both directions, and half-closes each when it ends", "[proxy]") {
  run([] {
    auto [client, near] = tcp_pair();
    auto [far, server] = tcp_pair();
    auto joined = spin([&a = near, &b = far] { return proxy(a, b); });
    client.write_all("question");
    CHECK(testing::read_text(server) == "question");
    client.shutdown(SHUT_WR);
    CHECK(testing::read_text(server) == "");
    server.write_all("a long answer");
    CHECK(testing::read_text(client) == "a long answer");
    CHECK(joined.state() != fiber_state::dead);
    server.close();
    CHECK(testing::read_text(client) == "");
    const proxied moved = joined.await();
    CHECK(moved.forth == 8);
    CHECK(moved.back == 13);
  });
}

TEST_CASE("a proxy ends when nothing has come for its limit", "[proxy]") {
  run([] {
    auto [client, near] = net::stream_pair();
    auto [far, server] = net::stream_pair();
    auto joined = spin([&a = near, &b = far] { proxy(a, b, 40ms); });
    const auto begun = clock::now();
    for (int i = 0; i < 6; ++i) {
      sleep_for(15ms);
      (i % 2 == 0 ? client : server).write_all("x");
    }
    CHECK_THROWS_AS(joined.await(), timed_out);
    CHECK(clock::now() - begun >= 130ms);
  });
}

TEST_CASE("a proxy that ends by an exception has told how much it moved", "[proxy]") {
  run([] {
    auto [client, near] = net::stream_pair();
    auto [far, server] = net::stream_pair();
    proxied moved;
    auto joined = spin([&, &a = near, &b = far] { proxy(a, b, 1h, moved); });
    client.write_all("question");
    CHECK(testing::read_text(server.native_handle()) == "question");
    server.write_all("an answer");
    CHECK(testing::read_text(client.native_handle()) == "an answer");
    joined.cancel();
    CHECK_THROWS_AS(joined.await(), fiber_cancelled);
    CHECK(moved.forth == 8);
    CHECK(moved.back == 9);
  });
}

TEST_CASE("a proxy counts what has been written, not what has been read", "[proxy]") {
  run([] {
    auto [client, near] = net::stream_pair();
    auto [far, server] = net::stream_pair();
    proxied moved;
    auto joined = spin([&, &a = near, &b = far] { proxy(a, b, 1h, moved); });
    auto sender = spin([&c = client] { c.write_all(std::string(8 << 20, 'x')); });
    std::uint64_t arrived = testing::read_text(server.native_handle()).size();
    for (int i = 0; i < 200; ++i) snooze();  // all buffers get full
    joined.cancel();
    CHECK_THROWS_AS(joined.await(), fiber_cancelled);
    far.shutdown(SHUT_WR);
    while (const std::size_t part = testing::read_text(server.native_handle(), 65'536).size())
      arrived += part;
    CHECK(moved.forth == arrived);
    sender.cancel();
    CHECK_THROWS_AS(sender.await(), fiber_cancelled);
  });
}

TEST_CASE("a proxy ends both directions when one fails", "[proxy]") {
  run([] {
    auto [client, near] = tcp_pair();
    auto [far, server] = tcp_pair();
    auto joined = spin([&a = near, &b = far] { return error_of([&] { proxy(a, b); }); });
    until_waiting(joined);
    testing::reset_when_closed(server);
    server.close();
    CHECK(joined.await() == std::errc::connection_reset);
  });
}

TEST_CASE("a proxy of pipes is a filter in the middle", "[proxy]") {
  run([] {
    motet::pipe there = motet::pipe::open();
    motet::pipe back = motet::pipe::open();
    motet::pipe process(there.release(SHUT_RD), back.release(SHUT_WR));
    motet::pipe console(back.release(SHUT_RD), there.release(SHUT_WR));
    auto [user, line] = net::stream_pair();
    auto joined = spin([&, &l = line] { return proxy(l, console); });
    auto echo = spin([&] {
      copy(process, process);
      process.shutdown(SHUT_WR);
    });
    user.write_all("hello");
    user.shutdown(SHUT_WR);
    CHECK(all_of(user) == "hello");
    CHECK(joined.await().back == 5);
    echo.await();
  });
}
