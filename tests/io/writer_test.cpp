// SPDX-License-Identifier: MIT
// Small writes, gathered: when they are written, in which order, and what an end does to them.
#include <motet/motet.hpp>
#include <optional>
#include <stdexcept>
#include <string>

#include "catch.hpp"
#include "fixtures.hpp"
#include "io/scripted_stream.hpp"
#include "io/streams.hpp"
#include "sockets.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::oops;
using testing::scripted_stream;
using testing::take_all;
using testing::words;

TEST_CASE("writer sends small writes as one when the fiber waits, snoozes, flushes or is done",
          "[writer]") {
  run([] {
    scripted_stream stream;
    std::optional<writer<scripted_stream>> output(std::in_place, stream);
    output->write("a");
    output->write("bc");
    CHECK(stream.writes.empty());
    CHECK(output->buffered() == 3);
    snooze();
    CHECK(stream.writes == words{"abc"});
    CHECK(output->buffered() == 0);
    output->write("d");
    output->write("");
    sleep_for(1ms);
    CHECK(stream.writes == words{"abc", "d"});
    output->write("e");
    output->flush();
    CHECK(stream.writes == words{"abc", "d", "e"});
    output->flush();
    output->write("f");
    output->write("g");
    output.reset();
    CHECK(stream.writes == words{"abc", "d", "e", "fg"});
  });
}

TEST_CASE("writer sends when its capacity is reached, and long texts as they are", "[writer]") {
  run([] {
    scripted_stream stream;
    writer output(stream, 4);
    output.write("abc");
    output.write("de");
    CHECK(stream.writes == words{"abc"});
    output.write("fg");
    CHECK(output.buffered() == 4);
    output.write("0123456789");
    CHECK(stream.writes == words{"abc", "defg", "0123456789"});
    CHECK_THROWS_AS(writer(stream, 0), std::invalid_argument);
  });
}

TEST_CASE("writer sends all in order to a stream that takes little at a time", "[writer]") {
  run([] {
    scripted_stream stream;
    stream.take_at_most(3);
    writer output(stream, 8);
    output.write("abcde");
    output.write("fghij");
    output.write("klmnopqrstuvwxyz");
    output.flush();
    CHECK(stream.written() == "abcdefghijklmnopqrstuvwxyz");
  });
}

TEST_CASE("writer keeps the order with what is written to the stream itself", "[writer]") {
  run([] {
    auto ends = net::stream_pair();
    auto& stream = ends.first;
    auto& peer = ends.second;
    writer output(stream);
    output.write("1");
    auto direct_writer = spin([&stream] { stream.write_all("3"); });
    output.write("2");
    snooze();
    stream.write_all("4");
    output.write("5");
    stream.write_all("6");
    output.write("7");
    output.flush();
    direct_writer.await();
    CHECK(take_all(peer.native_handle()) == "1234567");
  });
}

TEST_CASE("writer sends a question before its fiber waits for the answer", "[writer]") {
  run([] {
    auto ends = net::stream_pair();
    auto& stream = ends.first;
    auto& peer = ends.second;
    auto server = spin([&peer] {
      reader input(peer);
      writer output(peer);
      for (const std::string_view line : input.lines()) {
        output.write("<");
        output.write(line);
        output.write(">\n");
      }
    });
    reader input(stream);
    {
      writer output(stream);
      for (const char* word : {"a", "b"}) {
        output.write(word);
        output.write("\n");
        CHECK(input.line() == "<" + std::string(word) + ">");
      }
    }
    stream.shutdown(SHUT_WR);
    server.await();
    peer.close();
    CHECK_FALSE(input.line().has_value());
  });
}

TEST_CASE("writer waits for a peer that does not read, and loses nothing", "[writer]") {
  run([] {
    auto ends = net::stream_pair();
    auto& stream = ends.first;
    auto& peer = ends.second;
    const int small = 4'096;  // is soon full
    REQUIRE(::setsockopt(stream.native_handle(), SOL_SOCKET, SO_SNDBUF, &small, sizeof small) == 0);
    std::string total;
    {
      writer output(stream, 1'000);
      const auto until_full = [&] {
        for (int i = 0;; ++i) {
          const std::string text = std::to_string(i) + ";";
          output.write(text);
          total += text;
        }
      };
      CHECK_FALSE(move_on_after(50ms, until_full));
      CHECK_FALSE(move_on_after(1ms, [&] { output.flush(); }));
      CHECK(output.buffered() > 0);
      auto consumer = spin([&peer] {
        std::string text;
        while (!text.ends_with("end")) text += testing::read_text(peer.native_handle(), 65'536);
        return text;
      });
      output.write("end");
      CHECK(consumer.await() == total + "end");
    }
    stream.write_all("after");
    CHECK(take_all(peer.native_handle()) == "after");
  });
}

TEST_CASE("writer keeps each text of several fibers in one piece, in order", "[writer]") {
  run([] {
    auto ends = net::stream_pair();
    auto& stream = ends.first;
    auto& peer = ends.second;
    std::string total;
    writer output(stream, 16);
    group writers;
    for (int i = 0; i < 10; ++i) {
      const std::string text(static_cast<std::size_t>(i) * 7, static_cast<char>('a' + i));
      total += text;
      writers.spin([&output, text] { output.write(text); });
    }
    writers.await_all();
    output.flush();
    CHECK(take_all(peer.native_handle()) == total);
  });
}

TEST_CASE("writer throws the error of its stream in every later call", "[writer]") {
  run([] {
    auto ends = net::stream_pair();
    auto& stream = ends.first;
    auto& peer = ends.second;
    peer.close();
    writer output(stream);
    output.write("lost");
    snooze();
    CHECK(testing::error_of([&] { output.flush(); }) == std::errc::broken_pipe);
    CHECK(testing::error_of([&] { output.write("more"); }) == std::errc::broken_pipe);
    CHECK(output.buffered() == 0);
    net::unix_stream socket;
    CHECK(testing::error_of([&] { writer(socket).write("x"); }) == std::errc::bad_file_descriptor);
  });
}

TEST_CASE("writer throws if its stream is closed under it", "[writer]") {
  run([] {
    auto ends = net::stream_pair();
    auto& stream = ends.first;
    auto& peer = ends.second;
    writer output(stream);
    output.write("x");
    stream.close();
    CHECK(testing::error_of([&] { output.write("y"); }) == std::errc::bad_file_descriptor);
    CHECK(take_all(peer.native_handle()) == "");
  });
}

TEST_CASE("writer does not block others when an exception or a time limit ends it", "[writer]") {
  run([] {
    auto ends = net::stream_pair();
    auto& stream = ends.first;
    auto& peer = ends.second;
    const auto fail = [&stream] {
      writer output(stream);
      output.write("x");
      throw oops();
    };
    CHECK_THROWS_AS(fail(), oops);
    CHECK_FALSE(move_on_after(1ms, [&stream] {
      writer output(stream, 1);
      for (;;) output.write("0123456789");
    }));
    const std::size_t size = take_all(peer.native_handle()).size();
    CHECK(size > 0);
    stream.write_all("after");
    CHECK(take_all(peer.native_handle()) == "after");
  });
}

TEST_CASE("writer throws an interruption of its destructor at the next switchpoint", "[writer]") {
  run([] {
    auto ends = net::stream_pair();
    auto& stream = ends.first;
    testing::fill(stream.native_handle());
    bool ended = false;
    auto producer = spin([&stream, &ended] {
      {
        writer output(stream);
        output.write("x");
      }
      ended = true;
      snooze();
    });
    testing::until_waiting(producer);
    CHECK(producer.raise(oops()));
    CHECK_THROWS_AS(producer.await(), oops);
    CHECK(ended);
  });
}

TEST_CASE("writer does not throw what another fiber raises in its destructor", "[writer]") {
  run([] {
    const auto fills = [](motet::pipe& way) {
      writer output(way, 100'000);
      output.write(std::string(99'999, 'x'));  // more than the pipe holds: the end waits
    };
    auto raised = spin([&] {
      motet::pipe way = motet::pipe::open();
      fills(way);
      snooze();
    });
    testing::until_waiting(raised);
    raised.raise(std::system_error(std::make_error_code(std::errc::io_error), "raised"));
    CHECK(testing::error_of([&] { raised.await(); }) == std::errc::io_error);
  });
}

TEST_CASE("writer sends what it has if its scope ends normally after the time limit", "[writer]") {
  run([] {
    motet::pipe way = motet::pipe::open();
    CHECK(move_on_after(1ms, [&] {
      writer output(way);
      output.write("farewell");
      for (const auto end = std::chrono::steady_clock::now() + 3ms;
           std::chrono::steady_clock::now() < end;) {
      }
    }));
    way.shutdown(SHUT_WR);
    std::byte room[16];
    CHECK(way.read(room) == 8);
  });
}

namespace {

void end_children() {
  for (fiber_ref& child : current().children()) child.cancel();
  for (int i = 0; i < 3; ++i) snooze();
}

template <typename F>
struct at_end {
  F f;
  ~at_end() { f(); }
};
template <typename F>
at_end(F) -> at_end<F>;

}  // namespace

TEST_CASE("writer sends what a fiber that was ended has not flushed", "[writer]") {
  run([] {
    scripted_stream stream;
    {
      writer output(stream);
      output.write("by the next ");
      end_children();
      CHECK(output.buffered() == 12);
      output.write("write");
      snooze();
      CHECK(stream.writes == words{"by the next write"});
      output.write(", flush");
      end_children();
      output.flush();
      CHECK(stream.written() == "by the next write, flush");
      output.write(" or end");
      end_children();
    }
    CHECK(stream.written() == "by the next write, flush or end");
  });
}

TEST_CASE("writer does not block others when its fiber ends before the flush", "[writer]") {
  run([] {
    auto ends = net::stream_pair();
    auto& stream = ends.first;
    {
      writer output(stream);
      output.write("behind");
      end_children();
      stream.write_all("before, ");
    }
    CHECK(take_all(ends.second.native_handle()) == "before, behind");

    auto producer = spin([&stream] {
      writer output(stream, 1 << 20);
      output.write(std::string(1 << 20, 'a'));  // more than the socket takes
      const at_end farewell{[&] { move_on_after(5ms, [&] { output.flush(); }); }};
      sleep();
    });
    testing::until_waiting(producer);
    sleep_for(1ms);
    producer.terminate(0s);
    CHECK_THROWS_AS(producer.await(), fiber_cancelled);
    CHECK(take_all(ends.second.native_handle()).size() > 0);
    stream.write_all("after");
    CHECK(take_all(ends.second.native_handle()) == "after");
  });
}

TEST_CASE("writer accepts a write in the handler of a cancellation", "[writer]") {
  run([] {
    scripted_stream stream;
    auto handler = spin([&] {
      writer output(stream, 4);
      try {
        sleep();
      } catch (const cancelled&) {
        output.write("good");
        output.write("bye, all");
        throw;
      }
    });
    testing::until_waiting(handler);
    handler.cancel();
    CHECK_THROWS_AS(handler.await(), fiber_cancelled);
    CHECK(stream.written() == "goodbye, all");
  });
}
