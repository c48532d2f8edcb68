// SPDX-License-Identifier: MIT
// Closing a descriptor: who waits on it is told, and nothing that was not read is lost.
#include <poll.h>

#include <chrono>
#include <motet/motet.hpp>
#include <system_error>

#include "catch.hpp"
#include "fixtures.hpp"
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
using testing::one_byte;
using testing::read_text;
using testing::until_waiting;

TEST_CASE("io::close() ends the operations on the descriptor with bad_file_descriptor", "[io]") {
  run([] {
    for (int round = 0; round < 50; ++round) {
      auto pair = make_socket_pair();
      testing::fill(pair.first());
      auto reader = spin([&] { return error_of([&] { read_text(pair.first()); }); });
      auto waiter = spin([&] { return error_of([&] { io::wait_fd(pair.first(), POLLIN); }); });
      auto writer = spin([&] { return error_of([&] { io::write(pair.first(), one_byte); }); });
      until_waiting(reader);
      until_waiting(waiter);
      until_waiting(writer);
      io::close(pair.first());
      const int number = pair.first();
      pair.forget_first();
      CHECK(reader.await() == bad_descriptor);
      CHECK(waiter.await() == bad_descriptor);
      CHECK(writer.await() == bad_descriptor);

      testing::take_all(pair.second());
      CHECK(read_text(pair.second()).empty());  // the peer sees the end

      auto fresh = make_socket_pair();
      CHECK(fresh.first() == number);
      auto new_reader = spin([&] { return read_text(fresh.first()); });
      until_waiting(new_reader);
      io::write(fresh.second(), bytes_of("mine"));
      CHECK(new_reader.await() == "mine");
    }
  });
}

TEST_CASE("io::close() leaves the bytes that its reader did not read", "[io]") {
  run([] {
    auto pipe = make_pipe();
    const fd duplicate(::dup(pipe.first()));
    auto reader = spin([&] { return error_of([&] { read_text(pipe.first()); }); });
    until_waiting(reader);
    io::close(pipe.first());
    pipe.forget_first();
    CHECK(reader.await() == bad_descriptor);
    io::write(pipe.second(), bytes_of("kept"));
    CHECK(read_text(duplicate.get()) == "kept");
  });
}

TEST_CASE("io::close() ends though a reader tries again on the descriptor", "[io]") {
  run([] {
    auto pair = make_socket_pair();
    int attempts = 0;
    auto stubborn = spin([&] {
      std::error_code error;
      do {
        ++attempts;
        io::read(pair.first(), one_byte, error);
      } while (error == bad_descriptor && attempts < 3);
    });
    until_waiting(stubborn);
    auto closer = spin([&] { io::close(pair.first()); });
    CHECK(move_on_after(50ms, [&] { closer.await(); }));
    CHECK(attempts == 3);
    io::shutdown(pair.second(), SHUT_RDWR);
    closer.await();
    stubborn.await();
    pair.forget_first();
  });
}

TEST_CASE("io::close() of one descriptor by two fibers throws in one of them", "[io]") {
  run([] {
    auto pair = make_socket_pair();
    auto reader = spin([&] { return error_of([&] { read_text(pair.first()); }); });
    until_waiting(reader);
    const int number = pair.first();
    const auto close_it = [&] {
      const std::error_code error = error_of([&] { io::close(number); });
      // Whoever was first may open something at once, and get the number.
      return std::pair(error, fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)));
    };
    auto first = spin(close_it);
    auto second = spin(close_it);
    const auto [first_error, first_opened] = std::move(first).await();
    const auto [second_error, second_opened] = std::move(second).await();
    pair.forget_first();
    CHECK(reader.await() == bad_descriptor);
    CHECK((first_error ? 1 : 0) + (second_error ? 1 : 0) == 1);
    CHECK((first_error ? first_error : second_error) == bad_descriptor);
    CHECK(first_opened.get() != second_opened.get());
    CHECK(::fcntl(first_opened.get(), F_GETFD) >= 0);
    CHECK(::fcntl(second_opened.get(), F_GETFD) >= 0);
  });
}

TEST_CASE("io::close() cannot be interrupted, and the interruption comes later", "[io]") {
  run([] {
    auto pair = make_socket_pair();
    auto reader = spin([&] { return error_of([&] { read_text(pair.first()); }); });
    until_waiting(reader);
    bool closed = false;
    auto closer = spin([&] {
      io::close(pair.first());
      closed = true;
      snooze();
    });
    while (closer.state() == fiber_state::runnable) snooze();
    closer.cancel();
    CHECK_THROWS_AS(closer.await(), fiber_cancelled);
    CHECK(closed);
    pair.forget_first();
    CHECK(reader.await() == bad_descriptor);
  });
}

TEST_CASE("fd closes its descriptor with the operations on it", "[io]") {
  run([] {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    fd read_end(ends[0]);
    const fd write_end(ends[1]);
    auto reader = spin([&] { return error_of([&] { read_text(ends[0]); }); });
    until_waiting(reader);
    fd target = std::move(read_end);
    CHECK_FALSE(read_end);
    target = fd();
    CHECK(reader.await() == bad_descriptor);
    CHECK(::fcntl(ends[0], F_GETFD) == -1);
  });
}
