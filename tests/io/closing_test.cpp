// SPDX-License-Identifier: MIT
// The rules of closing and releasing that docs/io.md lists, where fd_test and the tests of each
// kind of stream do not show them.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <motet/motet.hpp>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "catch.hpp"
#include "fixtures.hpp"
#include "io/scratch.hpp"
#include "io/streams.hpp"
#include "sockets.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::bad_descriptor;
using testing::bytes_of;
using testing::error_of;
using testing::make_pipe;
using testing::make_socket_pair;
using testing::read_text;
using testing::until_waiting;

TEST_CASE("of two numbers of one file, a close ends what waits on its own", "[closing]") {
  run([] {
    auto pair = make_socket_pair();
    const fd second(::fcntl(pair.first(), F_DUPFD_CLOEXEC, 0));
    const auto waits_on = [](int number) {
      return [number] { return error_of([&] { io::wait_fd(number, POLLIN); }); };
    };
    auto first_reader = spin([&] { return error_of([&] { read_text(pair.first()); }); });
    auto first_wait = spin(waits_on(pair.first()));
    auto second_wait = spin(waits_on(second.get()));
    auto second_reader = spin([&] { return read_text(second.get()); });
    until_waiting(second_reader);
    io::close(pair.first());
    pair.forget_first();
    CHECK(first_reader.await() == bad_descriptor);
    CHECK(first_wait.await() == bad_descriptor);
    sleep_for(1ms);
    CHECK(second_wait.state() == fiber_state::waiting);
    CHECK(second_reader.state() == fiber_state::waiting);
    io::write(pair.second(), bytes_of("whole"));
    CHECK(second_reader.await() == "whole");
    CHECK_FALSE(second_wait.await());
  });
}

TEST_CASE("a number that is given out again has nothing of its former file", "[closing]") {
  run([] {
    for (int round = 0; round < 20; ++round) {
      auto pair = make_socket_pair();
      const int number = pair.first();
      const fd second(::fcntl(number, F_DUPFD_CLOEXEC, 0));  // the former file stays open
      auto former = spin([&] { return error_of([&] { io::wait_fd(number, POLLIN); }); });
      until_waiting(former);
      io::close(number);
      pair.forget_first();
      CHECK(former.await() == bad_descriptor);
      auto pipe = make_pipe();
      REQUIRE(pipe.first() == number);
      auto reader = spin([&] { return read_text(number); });
      until_waiting(reader);
      io::write(pair.second(), bytes_of("for the former"));
      sleep_for(100us);
      CHECK(reader.state() == fiber_state::waiting);
      io::write(pipe.second(), bytes_of("for the new"));
      CHECK(reader.await() == "for the new");
    }
  });
}

TEST_CASE("a fiber in a close's way may open a file, which gets another number", "[closing]") {
  run([] {
    auto pair = make_socket_pair();
    const int number = pair.first();
    int opened = -1;
    auto reader = spin([&] {
      const std::error_code error = error_of([&] { read_text(number); });
      const fd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      opened = file.get();
      return error;
    });
    until_waiting(reader);
    io::close(number);
    pair.forget_first();
    CHECK(reader.await() == bad_descriptor);
    CHECK(opened >= 0);
    CHECK(opened != number);
  });
}

TEST_CASE("what a fiber waits on cannot be closed, or released, by another thread", "[closing]") {
  run([] {
    const auto holds = [](auto made, auto use) {
      auto waiting = spin([&] { use(made); });
      until_waiting(waiting);
      int refused = 0;
      std::thread([&] {
        const auto try_it = [&](auto end) {
          try {
            end();
          } catch (const std::logic_error&) {
            ++refused;
          }
        };
        try_it([&] { made.close(); });
        if constexpr (requires { made.release(SHUT_RD); }) {
          try_it([&] { (void)made.release(SHUT_RD); });
        } else {
          try_it([&] { (void)made.release(); });
        }
      }).join();
      CHECK(refused == 2);
      snooze();
      CHECK(waiting.state() == fiber_state::waiting);
      waiting.cancel();
      CHECK_THROWS_AS(waiting.await(), fiber_cancelled);
    };
    std::byte room[8];
    const auto read = [&](auto& from) { from.read(room); };
    auto pair = net::stream_pair();
    holds(std::move(pair.first), read);
    holds(motet::pipe::open(), read);
    net::tcp_listener listener(net::endpoint::loopback(0));
    net::tcp_stream connected = net::tcp_stream::connect(listener.local_endpoint());
    const net::tcp_stream accepted = listener.accept();
    holds(std::move(connected), read);
    holds(std::move(listener), [](auto& each) { each.accept(); });
  });
}

TEST_CASE("a branch of a select ends by a close of its descriptor", "[closing]") {
  run([] {
    auto pair = make_socket_pair();
    auto selecting = spin([&] {
      return error_of([&] { select(on_readable(pair.first(), [] {}), on_timeout(1h, [] {})); });
    });
    until_waiting(selecting);
    io::close(pair.first());
    pair.forget_first();
    CHECK(selecting.await() == bad_descriptor);
  });
}

TEST_CASE("whatever owns a descriptor ends its waits when it is closed or assigned to",
          "[closing]") {
  run([] {
    const auto ends = [](auto made, auto use, auto close) {
      auto waiting = spin([&] { return error_of([&] { use(made); }); });
      until_waiting(waiting);
      close(made);
      CHECK(waiting.await() == bad_descriptor);
      CHECK(error_of([&] { use(made); }) == bad_descriptor);
    };
    std::byte room[8];
    const auto read = [&](auto& from) { from.read(room); };
    const auto close = [](auto& each) { each.close(); };
    const auto assign = [](auto& each) { each = std::decay_t<decltype(each)>(); };
    auto pair = net::stream_pair();
    ends(std::move(pair.first), read, close);
    pair = net::stream_pair();
    ends(std::move(pair.first), read, assign);
    ends(motet::pipe::open(), read, close);
    ends(motet::pipe::open(), read, assign);
    net::tcp_listener listener(net::endpoint::loopback(0));
    net::tcp_stream connected = net::tcp_stream::connect(listener.local_endpoint());
    const net::tcp_stream accepted = listener.accept();
    ends(std::move(connected), read, close);
    ends(std::move(listener), [](auto& each) { each.accept(); }, close);
    net::udp_socket socket(net::endpoint::loopback(0));
    ends(std::move(socket), [&](auto& each) { each.receive_from(room); }, close);
  });
}

TEST_CASE("a stream, a listener and a pipe that are released end their waits, and stay open",
          "[closing]") {
  run([] {
    std::byte room[8];
    net::tcp_listener listener(net::endpoint::loopback(0));
    const net::endpoint where = listener.local_endpoint();
    auto accepting = spin([&] { return error_of([&] { listener.accept(); }); });
    until_waiting(accepting);
    net::tcp_listener again(listener.release());
    CHECK(accepting.await() == bad_descriptor);
    net::tcp_stream peer = net::tcp_stream::connect(where);
    net::tcp_stream ours = again.accept();

    auto reading = spin([&] { return error_of([&] { ours.read(room); }); });
    until_waiting(reading);
    net::tcp_stream next(ours.release());
    CHECK(reading.await() == bad_descriptor);
    peer.write_all("still");
    CHECK(testing::read_text(next) == "still");

    motet::pipe way = motet::pipe::open();
    auto emptying = spin([&] { return error_of([&] { way.read(room); }); });
    until_waiting(emptying);
    const fd exit = way.release(SHUT_RD);
    CHECK(emptying.await() == bad_descriptor);
    way.write_all(bytes_of("there"));
    CHECK(read_text(exit.get()) == "there");
  });
}

TEST_CASE("a close waits for a call on a disk that has begun", "[closing]") {
  run([] {
    const testing::scratch_name name;
    file out = file::open(name, O_RDWR | O_CREAT);
    out.write_all(std::string(std::size_t{8} << 20, 'x'));
    const int number = out.native_handle();
    std::error_code how = std::make_error_code(std::errc::timed_out);
    auto syncing = spin([&] { how = error_of([&] { io::fsync(number); }); });
    until_waiting(syncing);
    out.close();
    syncing.await();
    CHECK((!how || how == bad_descriptor));
    CHECK(::fcntl(number, F_GETFD) < 0);
  });
}

TEST_CASE("a close does not wait for a call that holds its turn while it waits for another stream",
          "[closing]") {
  run([] {
    auto silent = net::stream_pair();
    auto ends = net::stream_pair();
    auto copying = spin([&] { return error_of([&] { copy(silent.first, ends.first); }); });
    until_waiting(copying);
    CHECK(move_on_after(5s, [&] { ends.first.close(); }));
    silent.second.write_all("too late");
    CHECK(copying.await() == bad_descriptor);

    motet::pipe way = motet::pipe::open();
    auto filling = spin([&] { return error_of([&] { copy(silent.first, way); }); });
    until_waiting(filling);
    CHECK(move_on_after(5s, [&] { way.close(); }));
    silent.second.write_all("too late");
    CHECK(filling.await() == bad_descriptor);
  });
}

TEST_CASE("a release between two parts of a call ends the call", "[closing]") {
  run([] {
    const std::string much(1'000'000, 'm');
    motet::pipe way = motet::pipe::open();
    auto writing = spin([&] { return error_of([&] { way.write_all(much); }); });
    until_waiting(writing);
    const fd exit = way.release(SHUT_RD);
    std::vector<std::byte> room(65'536);
    io::read(exit.get(), room);
    while (writing.state() == fiber_state::waiting) snooze();  // a part has been written
    CHECK(move_on_after(5s, [&] { way.release(SHUT_WR); }));
    CHECK(writing.await() == bad_descriptor);
  });
}
