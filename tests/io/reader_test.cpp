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
    words found;
    reader in(stream);
    for (const std::string_view line : in.lines()) found.emplace_back(line);
    return found;
  });
}

}  // namespace

static_assert(stream<net::tcp_stream> && stream<net::unix_stream> && stream<motet::pipe> &&
              stream<file>);
static_assert(stream<scripted_stream>);
static_assert(!stream<int> && !stream<fd>);

TEST_CASE("lines are the same however the stream comes in parts", "[reader]") {
  const words expected{"one", "", "two\r", "three"};
  CHECK(lines_of({"one\n\r\ntwo\r\r\nthree"}) == expected);
  CHECK(lines_of({"one\n", "\r", "\n", "two\r\r\n", "thr", "ee\n"}) == expected);
  const std::string whole = "one\n\ntwo\r\r\nthree\n";
  std::vector<std::string> single;
  for (const char each : whole) single.emplace_back(1, each);
  CHECK(lines_of(single) == expected);
  CHECK(lines_of({}).empty());
  CHECK(lines_of({"\n"}) == words{""});
}

TEST_CASE("lines that are longer than the first buffer come whole", "[reader]") {
  std::vector<std::string> parts;
  words expected;
  for (std::size_t size : {1, 4'095, 4'096, 4'097, 20'000, 3, 65'536}) {
    expected.emplace_back(size, static_cast<char>('a' + expected.size()));
    const std::string line = expected.back() + "\n";
    for (std::size_t i = 0; i < line.size(); i += 1'000) parts.push_back(line.substr(i, 1'000));
  }
  CHECK(lines_of(parts) == expected);
}

TEST_CASE("a line beyond its limit is refused, and nothing is lost", "[reader]") {
  run([] {
    scripted_stream stream({"12345678\nabc\n123456789"});
    reader in(stream, 8);
    CHECK(in.line() == "12345678");
    try {
      in.line(2);
      FAIL("a line of 3 bytes");
    } catch (const limit_exceeded& much) {
      CHECK(much.limit() == 2);
      CHECK(much.size() == 3);
    }
    CHECK(in.line() == "abc");
    CHECK_THROWS_AS(in.line(), limit_exceeded);
    CHECK(text_of(in.peek(0)) == "123456789");
    CHECK_THROWS_AS(in.exactly(9), limit_exceeded);
    CHECK_THROWS_AS(in.peek(9), limit_exceeded);
    in.skip(1);
    CHECK(in.line() == "23456789");
    CHECK_FALSE(in.line().has_value());
    CHECK_THROWS_AS(reader(stream, 0), std::invalid_argument);
  });
}

TEST_CASE("a peer that sends no end of line fills no memory", "[reader]") {
  run([] {
    scripted_stream endless(std::vector<std::string>(100'000, std::string(1'000, 'x')));
    reader in(endless, 10'000);
    CHECK_THROWS_AS(in.line(), limit_exceeded);
    CHECK(in.peek(0).size() < 32'768);
  });
}

TEST_CASE("a peer that announces much and sends little fills no memory", "[reader]") {
  run([] {
    constexpr std::size_t announced = std::size_t{1} << 26;
    scripted_stream few(std::vector<std::string>(12, "a few bytes"));
    reader in(few, announced);
    in.skip(5);
    CHECK_THROWS_AS(in.exactly(announced), unexpected_eof);
    CHECK(in.peek(announced).size() == 12 * 11 - 5);
    CHECK(few.largest_room <= 4'096);
  });
}

TEST_CASE("as much as was announced comes whole", "[reader]") {
  run([] {
    std::string much(1'000'003, 'm');
    for (std::size_t i = 0; i < much.size(); i += 997) much[i] = static_cast<char>('a' + i % 26);
    std::vector<std::string> parts{"head"};
    for (std::size_t i = 0; i < much.size(); i += 1'234) parts.push_back(much.substr(i, 1'234));
    parts.emplace_back("tail");
    scripted_stream stream(std::move(parts));
    reader in(stream, much.size());
    CHECK(text_of(in.exactly(4)) == "head");
    CHECK((text_of(in.exactly(much.size())) == much));
    CHECK(text_of(in.peek(4)) == "tail");
    CHECK(stream.largest_room <= 2 * much.size());
  });
}

TEST_CASE("what comes before a delimiter, which may come in parts", "[reader]") {
  run([] {
    scripted_stream stream({"GET / HTTP/1.1\r\nhost: x\r", "\n\r", "\n", "body", ";;rest"});
    reader in(stream);
    CHECK(in.until("\r\n\r\n") == "GET / HTTP/1.1\r\nhost: x");
    CHECK(text_of(in.exactly(4)) == "body");
    CHECK(in.until(";") == "");
    CHECK(in.until(";", 0) == "");
    try {
      in.until(";");
      FAIL("there is no third one");
    } catch (const unexpected_eof& end) {
      CHECK(end.got() == 4);
    }
    CHECK(text_of(in.peek()) == "rest");
    in.skip(4);
    CHECK_FALSE(in.until(";").has_value());
    CHECK(in.peek().empty());
    CHECK_THROWS_AS(in.until(""), std::invalid_argument);
  });
}

TEST_CASE("so many bytes, or what there is of them", "[reader]") {
  run([] {
    scripted_stream stream({"ab", "cd", "efgh", "i"});
    reader in(stream);
    CHECK(text_of(in.peek(3)) == "abcd");
    CHECK(text_of(in.exactly(5)) == "abcde");
    in.skip(2);
    CHECK_THROWS_AS(in.exactly(3), unexpected_eof);
    CHECK(text_of(in.exactly(2)) == "hi");
    CHECK(in.exactly(0).empty());
    CHECK_THROWS_AS(in.exactly(1), unexpected_eof);
    CHECK_THROWS_AS(in.skip(1), unexpected_eof);
  });
}

TEST_CASE("a read takes what has been read ahead first", "[reader]") {
  run([] {
    scripted_stream stream({"line\nrest", "more"});
    reader in(stream);
    CHECK(in.line() == "line");
    std::array<std::byte, 64> room{};
    CHECK(text_of(std::span(room).first(in.read(std::span(room).first(3)))) == "res");
    CHECK(text_of(std::span(room).first(in.read(room))) == "t");
    std::error_code error;
    CHECK(text_of(std::span(room).first(in.read(room, error))) == "more");
    CHECK(in.read(room, error) == 0);
    CHECK_FALSE(error);
  });
}

TEST_CASE("a read of no bytes leaves the stream alone, whatever is held", "[reader]") {
  run([] {
    scripted_stream stream({"line\nrest"});
    reader in(stream);
    stream.fail_next(std::errc::connection_reset);
    std::error_code error = std::make_error_code(std::errc::timed_out);
    CHECK(in.read({}, error) == 0);
    CHECK_FALSE(error);
    CHECK(in.read({}) == 0);
    CHECK(testing::error_of([&] { in.line(); }) == std::errc::connection_reset);
    CHECK(in.line() == "line");
    CHECK(in.read({}) == 0);
    CHECK(text_of(in.peek(0)) == "rest");

    auto [near, far] = net::stream_pair();
    reader silent(near);
    CHECK(move_on_after(5ms, [&] { silent.read({}); }));
  });
}

TEST_CASE("an interruption of a reader loses nothing", "[reader]") {
  run([] {
    auto [near, far] = net::stream_pair();
    reader in(near);
    far.write_all("begin");
    CHECK_FALSE(move_on_after(2ms, [&] { in.line(); }));
    CHECK_FALSE(move_on_after(2ms, [&] { in.exactly(6); }));
    auto waiting = spin([&] { in.until(";"); });
    until_waiting(waiting);
    CHECK(waiting.raise(oops()));
    CHECK_THROWS_AS(waiting.await(), oops);
    far.write_all(" and end\n");
    CHECK(in.line() == "begin and end");
    far.close();
    CHECK_FALSE(in.line().has_value());
  });
}

TEST_CASE("fibers that share a reader get their lines in order", "[reader]") {
  run([] {
    auto [near, far] = net::stream_pair();
    reader in(near);
    words got;
    group all;
    for (int i = 0; i < 4; ++i) {
      all.spin([&, i] {
        while (const auto line = in.line()) got.push_back(std::to_string(i) + std::string(*line));
      });
    }
    snooze();
    for (const char* text : {"a\n", "b\nc\n", "d", "\n"}) {
      far.write_all(text);
      sleep_for(1ms);
    }
    far.close();
    all.await_all();
    CHECK(got == words{"0a", "1b", "2c", "3d"});
  });
}

TEST_CASE("a reader tells of a failure of its stream, and goes on after it", "[reader]") {
  run([] {
    scripted_stream stream({"a", "b\n"});
    stream.fail_next(std::errc::connection_reset);
    reader in(stream);
    CHECK(testing::error_of([&] { in.line(); }) == std::errc::connection_reset);
    CHECK(in.line() == "ab");
  });
}

TEST_CASE("a reader of a file and of a pipe", "[reader]") {
  run([] {
    const testing::scratch_name place;
    file made = file::open(place, O_RDWR | O_CREAT);
    made.write_all("x\ny\n");
    made.seek(0);
    CHECK(reader(made).line() == "x");
    motet::pipe both = motet::pipe::open();
    both.write_all("p\nq");
    both.shutdown(SHUT_WR);
    words found;
    reader in(both);
    for (const std::string_view line : in.lines()) found.emplace_back(line);
    CHECK(found == words{"p", "q"});
  });
}

TEST_CASE("limits count what is returned, and may be as large as there is", "[reader]") {
  run([] {
    scripted_stream exact({"12345\r\n", "123456\r\n", "12345\r"});
    reader in(exact, 5);
    CHECK(in.line() == "12345");
    CHECK_THROWS_AS(in.line(), limit_exceeded);
    CHECK(in.line(6) == "123456");
    CHECK_THROWS_AS(in.line(), limit_exceeded);  // a "\r" at the very end is none of a line's end
    CHECK(in.line(6) == "12345\r");
    scripted_stream any({"line\r\nrest"});
    reader all(any, std::numeric_limits<std::size_t>::max());
    CHECK(all.line() == "line");
    CHECK(all.until("s") == "re");
  });
}
