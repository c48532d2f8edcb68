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

std::string read_some(motet::pipe& from, std::size_t most = 64) {
  std::vector<std::byte> room(most);
  return text_of(std::span(room).first(from.read(room)));
}

iovec vector_of(std::string& text) {
  return {text.data(), text.size()};
}

}  // namespace

TEST_CASE("what is written to a pipe is read from it, until it ends", "[pipe]") {
  run([] {
    const std::size_t before = testing::open_descriptors();
    {
      motet::pipe both = motet::pipe::open();
      CHECK(testing::open_descriptors() == before + 2);
      auto reading = spin([&] { return read_some(both); });
      until_waiting(reading);
      both.write_all("hello");
      CHECK(reading.await() == "hello");
      both.write_all("rest");
      both.shutdown(SHUT_WR);
      CHECK(both.native_handle(SHUT_WR) == -1);
      CHECK(error_of([&] { both.write_all("x"); }) == std::errc::bad_file_descriptor);
      CHECK(read_some(both) == "rest");
      CHECK(read_some(both) == "");
    }
    CHECK(testing::open_descriptors() == before);
  });
}

TEST_CASE("a pipe that nobody reads from fails without a signal", "[pipe]") {
  run([] {
    motet::pipe both = motet::pipe::open();
    both.shutdown(SHUT_RD);
    CHECK(error_of([&] { both.write_all("x"); }) == std::errc::broken_pipe);
    std::error_code error;
    CHECK(both.write(std::as_bytes(std::span("x", 1)), error) == 0);
    CHECK(error == std::errc::broken_pipe);
    CHECK_THROWS_AS(both.shutdown(7), std::invalid_argument);
    CHECK_THROWS_AS(both.release(SHUT_RDWR), std::invalid_argument);
    both.shutdown(SHUT_RDWR);
    both.shutdown(SHUT_RDWR);
    CHECK(error_of([&] { read_some(both); }) == std::errc::bad_file_descriptor);
    motet::pipe none;
    CHECK(error_of([&] { none.write_all(""); }) == std::errc::bad_file_descriptor);
    none.close();
  });
}

TEST_CASE("a full pipe holds its writers up, in their order", "[pipe]") {
  run([] {
    motet::pipe both = motet::pipe::open();
    const std::string a(100'000, 'a');
    const std::string b(50'000, 'b');
    auto first = spin([&] { both.write_all(a); });
    auto second = spin([&] { both.write_all(b); });
    until_waiting(second);
    std::string all;
    while (all.size() < a.size() + b.size()) all += read_some(both, 4096);
    CHECK(all == a + b);
    await_all(first, second);
  });
}

TEST_CASE("several buffers are written whole", "[pipe][stream]") {
  run([] {
    std::vector<std::string> texts;
    std::string expected;
    for (int i = 0; i < 2'000; ++i) {
      texts.emplace_back(static_cast<std::size_t>(i % 120), static_cast<char>('a' + i % 26));
      expected += texts.back();
    }
    std::vector<iovec> vectors;
    for (std::string& each : texts) vectors.push_back(vector_of(each));
    motet::pipe through = motet::pipe::open();
    auto ends = net::stream_pair();
    auto& near = ends.first;
    auto& far = ends.second;
    group writers;
    writers.spin([&] {
      through.writev_all(vectors);
      through.writev_all({});
    });
    writers.spin([&] { near.writev_all(vectors); });
    std::string all;
    while (all.size() < expected.size()) all += read_some(through, 4096);
    CHECK(all == expected);
    std::string sent;
    std::vector<std::byte> room(4096);
    while (sent.size() < expected.size()) {
      sent += text_of(std::span(room).first(far.read(room)));
    }
    CHECK(sent == expected);
    writers.await_all();
  });
}

TEST_CASE("interruptions and ends of waits on a pipe", "[pipe]") {
  run([] {
    motet::pipe both = motet::pipe::open();
    CHECK_FALSE(move_on_after(1ms, [&] { read_some(both); }));
    auto first = spin([&] { read_some(both); });
    auto second = spin([&] { read_some(both); });
    until_waiting(second);
    CHECK(second.raise(oops()));
    CHECK_THROWS_AS(second.await(), oops);
    auto third = spin([&] { return error_of([&] { read_some(both); }); });
    until_waiting(third);
    both.write_all("x");
    first.await();
    until_waiting(third);
    both.shutdown(SHUT_RD);
    CHECK(third.await() == std::errc::bad_file_descriptor);
  });
}

TEST_CASE("an end that is released stays open", "[pipe]") {
  run([] {
    motet::pipe both = motet::pipe::open();
    auto reading = spin([&] { return error_of([&] { read_some(both); }); });
    until_waiting(reading);
    const fd released = both.release(SHUT_RD);
    CHECK(reading.await() == std::errc::bad_file_descriptor);
    both.write_all("kept");
    CHECK(testing::take_all(released.get()) == "kept");
    CHECK_FALSE(both.release(SHUT_RD));
    motet::pipe moved = std::move(both);
    CHECK(both.native_handle(SHUT_WR) == -1);
    moved.write_all("more");
    CHECK(testing::take_all(released.get()) == "more");
  });
}

TEST_CASE("two pipes make a way there and back", "[pipe]") {
  run([] {
    motet::pipe there = motet::pipe::open();
    motet::pipe back = motet::pipe::open();
    motet::pipe near(back.release(SHUT_RD), there.release(SHUT_WR));
    motet::pipe far(there.release(SHUT_RD), back.release(SHUT_WR));
    near.write_all("ping");
    CHECK(read_some(far) == "ping");
    far.write_all("pong");
    CHECK(read_some(near) == "pong");
  });
}
