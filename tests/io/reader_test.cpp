// SPDX-License-Identifier: MIT
// Lines and other pieces of a stream, however it comes in parts.
#include <array>
#include <limits>
#include <motet/motet.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "io/scratch.hpp"
#include "io/scripted_stream.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::oops;
using testing::scripted_stream;
using testing::text_of;
using testing::until_waiting;
using testing::words;

namespace {

/// Each part is what one read of the stream returns.
words lines_of(std::vector<std::string> parts) {
  return run([&parts] {
    scripted_stream stream(std::move(parts));
    words lines;
    reader input(stream);
    for (const std::string_view line : input.lines()) lines.emplace_back(line);
    return lines;
  });
}

}  // namespace

static_assert(stream<net::tcp_stream> && stream<net::unix_stream> && stream<motet::pipe> &&
              stream<file>);
static_assert(stream<scripted_stream>);
static_assert(!stream<int> && !stream<fd>);

TEST_CASE("reader::lines() are the same however the stream comes in parts", "[reader]") {
  const words lines{"one", "", "two\r", "three"};
  CHECK(lines_of({"one\n\r\ntwo\r\r\nthree"}) == lines);
  CHECK(lines_of({"one\n", "\r", "\n", "two\r\r\n", "thr", "ee\n"}) == lines);
  const std::string whole = "one\n\ntwo\r\r\nthree\n";
  std::vector<std::string> single;
  for (const char byte : whole) single.emplace_back(1, byte);
  CHECK(lines_of(single) == lines);
  CHECK(lines_of({}).empty());
  CHECK(lines_of({"\n"}) == words{""});
}

TEST_CASE("reader::lines() are whole if they are longer than the first buffer", "[reader]") {
  std::vector<std::string> parts;
  words lines;
  for (std::size_t size : {1, 4'095, 4'096, 4'097, 20'000, 3, 65'536}) {
    lines.emplace_back(size, static_cast<char>('a' + lines.size()));
    const std::string line = lines.back() + "\n";
    for (std::size_t i = 0; i < line.size(); i += 1'000) parts.push_back(line.substr(i, 1'000));
  }
  CHECK(lines_of(parts) == lines);
}

TEST_CASE("reader::line() throws limit_exceeded for a long line, and loses nothing", "[reader]") {
  run([] {
    scripted_stream stream({"12345678\nabc\n123456789"});
    reader input(stream, 8);
    CHECK(input.line() == "12345678");
    try {
      input.line(2);
      FAIL("a line of 3 bytes");
    } catch (const limit_exceeded& much) {
      CHECK(much.limit() == 2);
      CHECK(much.size() == 3);
    }
    CHECK(input.line() == "abc");
    CHECK_THROWS_AS(input.line(), limit_exceeded);
    CHECK(text_of(input.peek(0)) == "123456789");
    CHECK_THROWS_AS(input.exactly(9), limit_exceeded);
    CHECK_THROWS_AS(input.peek(9), limit_exceeded);
    input.skip(1);
    CHECK(input.line() == "23456789");
    CHECK_FALSE(input.line().has_value());
    CHECK_THROWS_AS(reader(stream, 0), std::invalid_argument);
  });
}

TEST_CASE("reader::line() uses bounded memory if a peer sends no end of line", "[reader]") {
  run([] {
    scripted_stream endless(std::vector<std::string>(100'000, std::string(1'000, 'x')));
    reader input(endless, 10'000);
    CHECK_THROWS_AS(input.line(), limit_exceeded);
    CHECK(input.peek(0).size() < 32'768);
  });
}

TEST_CASE("reader::exactly() uses little memory if a peer announces much and sends little",
          "[reader]") {
  run([] {
    constexpr std::size_t announced = std::size_t{1} << 26;
    scripted_stream few(std::vector<std::string>(12, "a few bytes"));
    reader input(few, announced);
    input.skip(5);
    CHECK_THROWS_AS(input.exactly(announced), unexpected_eof);
    CHECK(input.peek(announced).size() == 12 * 11 - 5);
    CHECK(few.largest_room <= 4'096);
  });
}

TEST_CASE("reader::exactly() returns as much as was announced", "[reader]") {
  run([] {
    std::string much(1'000'003, 'm');
    for (std::size_t i = 0; i < much.size(); i += 997) much[i] = static_cast<char>('a' + i % 26);
    std::vector<std::string> parts{"head"};
    for (std::size_t i = 0; i < much.size(); i += 1'234) parts.push_back(much.substr(i, 1'234));
    parts.emplace_back("tail");
    scripted_stream stream(std::move(parts));
    reader input(stream, much.size());
    CHECK(text_of(input.exactly(4)) == "head");
    CHECK((text_of(input.exactly(much.size())) == much));
    CHECK(text_of(input.peek(4)) == "tail");
    CHECK(stream.largest_room <= 2 * much.size());
  });
}

TEST_CASE("reader::until() returns the text before a delimiter, which may come in parts",
          "[reader]") {
  run([] {
    scripted_stream stream({"GET / HTTP/1.1\r\nhost: x\r", "\n\r", "\n", "body", ";;rest"});
    reader input(stream);
    CHECK(input.until("\r\n\r\n") == "GET / HTTP/1.1\r\nhost: x");
    CHECK(text_of(input.exactly(4)) == "body");
    CHECK(input.until(";") == "");
    CHECK(input.until(";", 0) == "");
    try {
      input.until(";");
      FAIL("there is no third one");
    } catch (const unexpected_eof& end) {
      CHECK(end.got() == 4);
    }
    CHECK(text_of(input.peek()) == "rest");
    input.skip(4);
    CHECK_FALSE(input.until(";").has_value());
    CHECK(input.peek().empty());
    CHECK_THROWS_AS(input.until(""), std::invalid_argument);
  });
}

TEST_CASE("reader::peek(), exactly() and skip() take so many bytes, or throw unexpected_eof",
          "[reader]") {
  run([] {
    scripted_stream stream({"ab", "cd", "efgh", "i"});
    reader input(stream);
    CHECK(text_of(input.peek(3)) == "abcd");
    CHECK(text_of(input.exactly(5)) == "abcde");
    input.skip(2);
    CHECK_THROWS_AS(input.exactly(3), unexpected_eof);
    CHECK(text_of(input.exactly(2)) == "hi");
    CHECK(input.exactly(0).empty());
    CHECK_THROWS_AS(input.exactly(1), unexpected_eof);
    CHECK_THROWS_AS(input.skip(1), unexpected_eof);
  });
}

TEST_CASE("reader::read() returns first what was read ahead", "[reader]") {
  run([] {
    scripted_stream stream({"line\nrest", "more"});
    reader input(stream);
    CHECK(input.line() == "line");
    std::array<std::byte, 64> room{};
    CHECK(text_of(std::span(room).first(input.read(std::span(room).first(3)))) == "res");
    CHECK(text_of(std::span(room).first(input.read(room))) == "t");
    std::error_code error;
    CHECK(text_of(std::span(room).first(input.read(room, error))) == "more");
    CHECK(input.read(room, error) == 0);
    CHECK_FALSE(error);
  });
}

TEST_CASE("reader::read() of no bytes leaves the stream alone, whatever is held", "[reader]") {
  run([] {
    scripted_stream script({"line\nrest"});
    reader input(script);
    script.fail_next(std::errc::connection_reset);
    std::error_code error = std::make_error_code(std::errc::timed_out);
    CHECK(input.read({}, error) == 0);
    CHECK_FALSE(error);
    CHECK(input.read({}) == 0);
    CHECK(testing::error_of([&] { input.line(); }) == std::errc::connection_reset);
    CHECK(input.line() == "line");
    CHECK(input.read({}) == 0);
    CHECK(text_of(input.peek(0)) == "rest");

    auto [stream, peer] = net::stream_pair();
    reader silent(stream);
    CHECK(move_on_after(5ms, [&] { silent.read({}); }));
  });
}

TEST_CASE("reader loses nothing when it is interrupted", "[reader]") {
  run([] {
    auto [stream, peer] = net::stream_pair();
    reader input(stream);
    peer.write_all("begin");
    CHECK_FALSE(move_on_after(2ms, [&] { input.line(); }));
    CHECK_FALSE(move_on_after(2ms, [&] { input.exactly(6); }));
    auto waiter = spin([&] { input.until(";"); });
    until_waiting(waiter);
    CHECK(waiter.raise(oops()));
    CHECK_THROWS_AS(waiter.await(), oops);
    peer.write_all(" and end\n");
    CHECK(input.line() == "begin and end");
    peer.close();
    CHECK_FALSE(input.line().has_value());
  });
}

TEST_CASE("reader gives the fibers that share it their lines in order", "[reader]") {
  run([] {
    auto [stream, peer] = net::stream_pair();
    reader input(stream);
    words lines;
    group readers;
    for (int i = 0; i < 4; ++i) {
      readers.spin([&, i] {
        while (const auto line = input.line())
          lines.push_back(std::to_string(i) + std::string(*line));
      });
    }
    snooze();
    for (const char* text : {"a\n", "b\nc\n", "d", "\n"}) {
      peer.write_all(text);
      sleep_for(1ms);
    }
    peer.close();
    readers.await_all();
    CHECK(lines == words{"0a", "1b", "2c", "3d"});
  });
}

TEST_CASE("reader throws if its stream fails, and goes on after it", "[reader]") {
  run([] {
    scripted_stream stream({"a", "b\n"});
    stream.fail_next(std::errc::connection_reset);
    reader input(stream);
    CHECK(testing::error_of([&] { input.line(); }) == std::errc::connection_reset);
    CHECK(input.line() == "ab");
  });
}

TEST_CASE("reader reads a file and a pipe", "[reader]") {
  run([] {
    const testing::scratch_name place;
    file file = file::open(place, O_RDWR | O_CREAT);
    file.write_all("x\ny\n");
    file.seek(0);
    CHECK(reader(file).line() == "x");
    motet::pipe pipe = motet::pipe::open();
    pipe.write_all("p\nq");
    pipe.shutdown(SHUT_WR);
    words lines;
    reader input(pipe);
    for (const std::string_view line : input.lines()) lines.emplace_back(line);
    CHECK(lines == words{"p", "q"});
  });
}

TEST_CASE("reader limits count what is returned, and may be as large as there is", "[reader]") {
  run([] {
    scripted_stream exact({"12345\r\n", "123456\r\n", "12345\r"});
    reader input(exact, 5);
    CHECK(input.line() == "12345");
    CHECK_THROWS_AS(input.line(), limit_exceeded);
    CHECK(input.line(6) == "123456");
    CHECK_THROWS_AS(input.line(),
                    limit_exceeded);  // a "\r" at the very end is none of a line's end
    CHECK(input.line(6) == "12345\r");
    scripted_stream source({"line\r\nrest"});
    reader lines(source, std::numeric_limits<std::size_t>::max());
    CHECK(lines.line() == "line");
    CHECK(lines.until("s") == "re");
  });
}
