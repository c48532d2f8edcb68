// SPDX-License-Identifier: MIT
// Pipes: two ends, each with its own order of use and its own end.
#include <sys/uio.h>

#include <array>
#include <motet/motet.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "sockets.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::error_of;
using testing::oops;
using testing::text_of;
using testing::until_waiting;

namespace {

std::string read_some(motet::pipe& source, std::size_t limit = 64) {
  std::vector<std::byte> room(limit);
  return text_of(std::span(room).first(source.read(room)));
}

iovec vector_of(std::string& text) {
  return {text.data(), text.size()};
}

}  // namespace

TEST_CASE("pipe::read() returns what was written, until the end", "[pipe]") {
  run([] {
    const std::size_t descriptors = testing::open_descriptors();
    {
      motet::pipe pipe = motet::pipe::open();
      CHECK(testing::open_descriptors() == descriptors + 2);
      auto reader = spin([&] { return read_some(pipe); });
      until_waiting(reader);
      pipe.write_all("hello");
      CHECK(reader.await() == "hello");
      pipe.write_all("rest");
      pipe.shutdown(SHUT_WR);
      CHECK(pipe.native_handle(SHUT_WR) == -1);
      CHECK(error_of([&] { pipe.write_all("x"); }) == std::errc::bad_file_descriptor);
      CHECK(read_some(pipe) == "rest");
      CHECK(read_some(pipe) == "");
    }
    CHECK(testing::open_descriptors() == descriptors);
  });
}

TEST_CASE("pipe::write_all() fails without a signal if nobody reads", "[pipe]") {
  run([] {
    motet::pipe pipe = motet::pipe::open();
    pipe.shutdown(SHUT_RD);
    CHECK(error_of([&] { pipe.write_all("x"); }) == std::errc::broken_pipe);
    std::error_code error;
    CHECK(pipe.write(std::as_bytes(std::span("x", 1)), error) == 0);
    CHECK(error == std::errc::broken_pipe);
    CHECK_THROWS_AS(pipe.shutdown(7), std::invalid_argument);
    CHECK_THROWS_AS(pipe.release(SHUT_RDWR), std::invalid_argument);
    pipe.shutdown(SHUT_RDWR);
    pipe.shutdown(SHUT_RDWR);
    CHECK(error_of([&] { read_some(pipe); }) == std::errc::bad_file_descriptor);
    motet::pipe closed_pipe;
    CHECK(error_of([&] { closed_pipe.write_all(""); }) == std::errc::bad_file_descriptor);
    closed_pipe.close();
  });
}

TEST_CASE("pipe::write_all() waits while the pipe is full, in the order of the calls", "[pipe]") {
  run([] {
    motet::pipe pipe = motet::pipe::open();
    const std::string a(100'000, 'a');
    const std::string b(50'000, 'b');
    auto first = spin([&] { pipe.write_all(a); });
    auto second = spin([&] { pipe.write_all(b); });
    until_waiting(second);
    std::string text;
    while (text.size() < a.size() + b.size()) text += read_some(pipe, 4096);
    CHECK(text == a + b);
    await_all(first, second);
  });
}

TEST_CASE("pipe::writev_all() and unix_stream::writev_all() write several buffers whole",
          "[pipe][stream]") {
  run([] {
    std::vector<std::string> texts;
    std::string total;
    for (int i = 0; i < 2'000; ++i) {
      texts.emplace_back(static_cast<std::size_t>(i % 120), static_cast<char>('a' + i % 26));
      total += texts.back();
    }
    std::vector<iovec> vectors;
    for (std::string& text : texts) vectors.push_back(vector_of(text));
    motet::pipe pipe = motet::pipe::open();
    auto ends = net::stream_pair();
    auto& stream = ends.first;
    auto& peer = ends.second;
    group writers;
    writers.spin([&] {
      pipe.writev_all(vectors);
      pipe.writev_all({});
    });
    writers.spin([&] { stream.writev_all(vectors); });
    std::string pipe_text;
    while (pipe_text.size() < total.size()) pipe_text += read_some(pipe, 4096);
    CHECK(pipe_text == total);
    std::string stream_text;
    std::vector<std::byte> room(4096);
    while (stream_text.size() < total.size()) {
      stream_text += text_of(std::span(room).first(peer.read(room)));
    }
    CHECK(stream_text == total);
    writers.await_all();
  });
}

TEST_CASE("pipe::read() ends by an interruption, and by a shutdown", "[pipe]") {
  run([] {
    motet::pipe pipe = motet::pipe::open();
    CHECK_FALSE(move_on_after(1ms, [&] { read_some(pipe); }));
    auto first = spin([&] { read_some(pipe); });
    auto second = spin([&] { read_some(pipe); });
    until_waiting(second);
    CHECK(second.raise(oops()));
    CHECK_THROWS_AS(second.await(), oops);
    auto third = spin([&] { return error_of([&] { read_some(pipe); }); });
    until_waiting(third);
    pipe.write_all("x");
    first.await();
    until_waiting(third);
    pipe.shutdown(SHUT_RD);
    CHECK(third.await() == std::errc::bad_file_descriptor);
  });
}

TEST_CASE("pipe::release() leaves the descriptor open", "[pipe]") {
  run([] {
    motet::pipe pipe = motet::pipe::open();
    auto reader = spin([&] { return error_of([&] { read_some(pipe); }); });
    until_waiting(reader);
    const fd released = pipe.release(SHUT_RD);
    CHECK(reader.await() == std::errc::bad_file_descriptor);
    pipe.write_all("kept");
    CHECK(testing::take_all(released.get()) == "kept");
    CHECK_FALSE(pipe.release(SHUT_RD));
    motet::pipe target = std::move(pipe);
    CHECK(pipe.native_handle(SHUT_WR) == -1);
    target.write_all("more");
    CHECK(testing::take_all(released.get()) == "more");
  });
}

TEST_CASE("pipe takes the ends of two others as a way there and back", "[pipe]") {
  run([] {
    motet::pipe forth = motet::pipe::open();
    motet::pipe back = motet::pipe::open();
    motet::pipe client(back.release(SHUT_RD), forth.release(SHUT_WR));
    motet::pipe server(forth.release(SHUT_RD), back.release(SHUT_WR));
    client.write_all("ping");
    CHECK(read_some(server) == "ping");
    server.write_all("pong");
    CHECK(read_some(client) == "pong");
  });
}
