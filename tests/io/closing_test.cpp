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

TEST_CASE("io::close() ends what waits on its own number, not on a duplicate", "[closing]") {
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

TEST_CASE("io::close() leaves nothing of the former file when its number is given out again",
          "[closing]") {
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

TEST_CASE("io::close() keeps its number until the fibers that it ends have run", "[closing]") {
  run([] {
    auto pair = make_socket_pair();
    const int number = pair.first();
    int new_number = -1;
    auto reader = spin([&] {
      const std::error_code error = error_of([&] { read_text(number); });
      const fd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      new_number = file.get();
      return error;
    });
    until_waiting(reader);
    io::close(number);
    pair.forget_first();
    CHECK(reader.await() == bad_descriptor);
    CHECK(new_number >= 0);
    CHECK(new_number != number);
  });
}

TEST_CASE("close() and release() throw on another thread while a fiber waits on the descriptor",
          "[closing]") {
  run([] {
    const auto holds = [](auto object, auto use) {
      auto waiter = spin([&] { use(object); });
      until_waiting(waiter);
      int refused = 0;
      std::thread([&] {
        const auto try_it = [&](auto end) {
          try {
            end();
          } catch (const std::logic_error&) {
            ++refused;
          }
        };
        try_it([&] { object.close(); });
        if constexpr (requires { object.release(SHUT_RD); }) {
          try_it([&] { (void)object.release(SHUT_RD); });
        } else {
          try_it([&] { (void)object.release(); });
        }
      }).join();
      CHECK(refused == 2);
      snooze();
      CHECK(waiter.state() == fiber_state::waiting);
      waiter.cancel();
      CHECK_THROWS_AS(waiter.await(), fiber_cancelled);
    };
    std::byte room[8];
    const auto read_some = [&](auto& stream) { stream.read(room); };
    auto pair = net::stream_pair();
    holds(std::move(pair.first), read_some);
    holds(motet::pipe::open(), read_some);
    net::tcp_listener listener(net::endpoint::loopback(0));
    net::tcp_stream connected = net::tcp_stream::connect(listener.local_endpoint());
    const net::tcp_stream accepted = listener.accept();
    holds(std::move(connected), read_some);
    holds(std::move(listener), [](auto& waiter) { waiter.accept(); });
  });
}

TEST_CASE("select() ends a branch when its descriptor is closed", "[closing]") {
  run([] {
    auto pair = make_socket_pair();
    auto selector = spin([&] {
      return error_of([&] { select(on_readable(pair.first(), [] {}), on_timeout(1h, [] {})); });
    });
    until_waiting(selector);
    io::close(pair.first());
    pair.forget_first();
    CHECK(selector.await() == bad_descriptor);
  });
}

TEST_CASE("close() and assignment end the waits of a stream, a pipe, a listener and a socket",
          "[closing]") {
  run([] {
    const auto ends = [](auto object, auto use, auto close) {
      auto waiter = spin([&] { return error_of([&] { use(object); }); });
      until_waiting(waiter);
      close(object);
      CHECK(waiter.await() == bad_descriptor);
      CHECK(error_of([&] { use(object); }) == bad_descriptor);
    };
    std::byte room[8];
    const auto read_some = [&](auto& stream) { stream.read(room); };
    const auto close = [](auto& object) { object.close(); };
    const auto assign = [](auto& object) { object = std::decay_t<decltype(object)>(); };
    auto pair = net::stream_pair();
    ends(std::move(pair.first), read_some, close);
    pair = net::stream_pair();
    ends(std::move(pair.first), read_some, assign);
    ends(motet::pipe::open(), read_some, close);
    ends(motet::pipe::open(), read_some, assign);
    net::tcp_listener listener(net::endpoint::loopback(0));
    net::tcp_stream connected = net::tcp_stream::connect(listener.local_endpoint());
    const net::tcp_stream accepted = listener.accept();
    ends(std::move(connected), read_some, close);
    ends(std::move(listener), [](auto& acceptor) { acceptor.accept(); }, close);
    net::udp_socket socket(net::endpoint::loopback(0));
    ends(std::move(socket), [&](auto& receiver) { receiver.receive_from(room); }, close);
  });
}

TEST_CASE("release() ends the waits on a stream, a listener and a pipe, which stay open",
          "[closing]") {
  run([] {
    std::byte room[8];
    net::tcp_listener listener(net::endpoint::loopback(0));
    const net::endpoint address = listener.local_endpoint();
    auto acceptor = spin([&] { return error_of([&] { listener.accept(); }); });
    until_waiting(acceptor);
    net::tcp_listener second(listener.release());
    CHECK(acceptor.await() == bad_descriptor);
    net::tcp_stream peer = net::tcp_stream::connect(address);
    net::tcp_stream server = second.accept();

    auto reader = spin([&] { return error_of([&] { server.read(room); }); });
    until_waiting(reader);
    net::tcp_stream next(server.release());
    CHECK(reader.await() == bad_descriptor);
    peer.write_all("still");
    CHECK(testing::read_text(next) == "still");

    motet::pipe way = motet::pipe::open();
    auto drainer = spin([&] { return error_of([&] { way.read(room); }); });
    until_waiting(drainer);
    const fd exit = way.release(SHUT_RD);
    CHECK(drainer.await() == bad_descriptor);
    way.write_all(bytes_of("there"));
    CHECK(read_text(exit.get()) == "there");
  });
}

TEST_CASE("file::close() waits for a call on a disk that has begun", "[closing]") {
  run([] {
    const testing::scratch_name name;
    file file_to_sync = file::open(name, O_RDWR | O_CREAT);
    file_to_sync.write_all(std::string(std::size_t{8} << 20, 'x'));
    const int number = file_to_sync.native_handle();
    std::error_code result = std::make_error_code(std::errc::timed_out);
    auto syncer = spin([&] { result = error_of([&] { io::fsync(number); }); });
    until_waiting(syncer);
    file_to_sync.close();
    syncer.await();
    CHECK((!result || result == bad_descriptor));
    CHECK(::fcntl(number, F_GETFD) < 0);
  });
}

TEST_CASE("close() does not wait for a copy() that waits for another stream", "[closing]") {
  run([] {
    auto silent = net::stream_pair();
    auto ends = net::stream_pair();
    auto copier = spin([&] { return error_of([&] { copy(silent.first, ends.first); }); });
    until_waiting(copier);
    CHECK(move_on_after(5s, [&] { ends.first.close(); }));
    silent.second.write_all("too late");
    CHECK(copier.await() == bad_descriptor);

    motet::pipe way = motet::pipe::open();
    auto pipe_filler = spin([&] { return error_of([&] { copy(silent.first, way); }); });
    until_waiting(pipe_filler);
    CHECK(move_on_after(5s, [&] { way.close(); }));
    silent.second.write_all("too late");
    CHECK(pipe_filler.await() == bad_descriptor);
  });
}

TEST_CASE("pipe::release() ends a write_all() between two of its parts", "[closing]") {
  run([] {
    const std::string much(1'000'000, 'm');
    motet::pipe way = motet::pipe::open();
    auto filler = spin([&] { return error_of([&] { way.write_all(much); }); });
    until_waiting(filler);
    const fd exit = way.release(SHUT_RD);
    std::vector<std::byte> room(65'536);
    io::read(exit.get(), room);
    while (filler.state() == fiber_state::waiting) snooze();  // a part has been written
    CHECK(move_on_after(5s, [&] { way.release(SHUT_WR); }));
    CHECK(filler.await() == bad_descriptor);
  });
}
