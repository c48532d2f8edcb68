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

TEST_CASE("small writes are one when the fiber waits, snoozes, flushes or is done", "[writer]") {
  run([] {
    scripted_stream to;
    std::optional<writer<scripted_stream>> out(std::in_place, to);
    out->write("a");
    out->write("bc");
    CHECK(to.writes.empty());
    CHECK(out->buffered() == 3);
    snooze();
    CHECK(to.writes == words{"abc"});
    CHECK(out->buffered() == 0);
    out->write("d");
    out->write("");
    sleep_for(1ms);
    CHECK(to.writes == words{"abc", "d"});
    out->write("e");
    out->flush();
    CHECK(to.writes == words{"abc", "d", "e"});
    out->flush();
    out->write("f");
    out->write("g");
    out.reset();
    CHECK(to.writes == words{"abc", "d", "e", "fg"});
  });
}

TEST_CASE("a writer sends when its capacity is full, and long texts as they are", "[writer]") {
  run([] {
    scripted_stream to;
    writer out(to, 4);
    out.write("abc");
    out.write("de");
    CHECK(to.writes == words{"abc"});
    out.write("fg");
    CHECK(out.buffered() == 4);
    out.write("0123456789");
    CHECK(to.writes == words{"abc", "defg", "0123456789"});
    CHECK_THROWS_AS(writer(to, 0), std::invalid_argument);
  });
}

TEST_CASE("a stream that takes little at a time gets all, in order", "[writer]") {
  run([] {
    scripted_stream to;
    to.take_at_most(3);
    writer out(to, 8);
    out.write("abcde");
    out.write("fghij");
    out.write("klmnopqrstuvwxyz");
    out.flush();
    CHECK(to.written() == "abcdefghijklmnopqrstuvwxyz");
  });
}

TEST_CASE("what is written to the stream itself comes behind", "[writer]") {
  run([] {
    auto ends = net::stream_pair();
    auto& near = ends.first;
    auto& far = ends.second;
    writer out(near);
    out.write("1");
    auto other = spin([&near] { near.write_all("3"); });
    out.write("2");
    snooze();
    near.write_all("4");
    out.write("5");
    near.write_all("6");
    out.write("7");
    out.flush();
    other.await();
    CHECK(take_all(far.native_handle()) == "1234567");
  });
}

TEST_CASE("a question is sent before its answer is waited for", "[writer]") {
  run([] {
    auto ends = net::stream_pair();
    auto& near = ends.first;
    auto& far = ends.second;
    auto server = spin([&far] {
      reader in(far);
      writer out(far);
      for (const std::string_view line : in.lines()) {
        out.write("<");
        out.write(line);
        out.write(">\n");
      }
    });
    reader in(near);
    {
      writer out(near);
      for (const char* each : {"a", "b"}) {
        out.write(each);
        out.write("\n");
        CHECK(in.line() == "<" + std::string(each) + ">");
      }
    }
    near.shutdown(SHUT_WR);
    server.await();
    far.close();
    CHECK_FALSE(in.line().has_value());
  });
}

TEST_CASE("a peer that does not read holds a writer up, which loses nothing", "[writer]") {
  run([] {
    auto ends = net::stream_pair();
    auto& near = ends.first;
    auto& far = ends.second;
    const int small = 4'096;  // is soon full
    REQUIRE(::setsockopt(near.native_handle(), SOL_SOCKET, SO_SNDBUF, &small, sizeof small) == 0);
    std::string expected;
    {
      writer out(near, 1'000);
      const auto until_full = [&] {
        for (int i = 0;; ++i) {
          const std::string text = std::to_string(i) + ";";
          out.write(text);
          expected += text;
        }
      };
      CHECK_FALSE(move_on_after(50ms, until_full));
      CHECK_FALSE(move_on_after(1ms, [&] { out.flush(); }));
      CHECK(out.buffered() > 0);
      auto reading = spin([&far] {
        std::string all;
        while (!all.ends_with("end")) all += testing::read_text(far.native_handle(), 65'536);
        return all;
      });
      out.write("end");
      CHECK(reading.await() == expected + "end");
    }
    near.write_all("after");
    CHECK(take_all(far.native_handle()) == "after");
  });
}

TEST_CASE("fibers that write at the same time come in order, each text in one piece", "[writer]") {
  run([] {
    auto ends = net::stream_pair();
    auto& near = ends.first;
    auto& far = ends.second;
    std::string expected;
    writer out(near, 16);
    group all;
    for (int i = 0; i < 10; ++i) {
      const std::string text(static_cast<std::size_t>(i) * 7, static_cast<char>('a' + i));
      expected += text;
      all.spin([&out, text] { out.write(text); });
    }
    all.await_all();
    out.flush();
    CHECK(take_all(far.native_handle()) == expected);
  });
}

TEST_CASE("a failure is told by every later call", "[writer]") {
  run([] {
    auto ends = net::stream_pair();
    auto& near = ends.first;
    auto& far = ends.second;
    far.close();
    writer out(near);
    out.write("lost");
    snooze();
    CHECK(testing::error_of([&] { out.flush(); }) == std::errc::broken_pipe);
    CHECK(testing::error_of([&] { out.write("more"); }) == std::errc::broken_pipe);
    CHECK(out.buffered() == 0);
    net::unix_stream none;
    CHECK(testing::error_of([&] { writer(none).write("x"); }) == std::errc::bad_file_descriptor);
  });
}

TEST_CASE("a stream may be closed under its writer", "[writer]") {
  run([] {
    auto ends = net::stream_pair();
    auto& near = ends.first;
    auto& far = ends.second;
    writer out(near);
    out.write("x");
    near.close();
    CHECK(testing::error_of([&] { out.write("y"); }) == std::errc::bad_file_descriptor);
    CHECK(take_all(far.native_handle()) == "");
  });
}

TEST_CASE("a writer that is left by an exception or a limit holds nobody up", "[writer]") {
  run([] {
    auto ends = net::stream_pair();
    auto& near = ends.first;
    auto& far = ends.second;
    const auto fail = [&near] {
      writer out(near);
      out.write("x");
      throw oops();
    };
    CHECK_THROWS_AS(fail(), oops);
    CHECK_FALSE(move_on_after(1ms, [&near] {
      writer out(near, 1);
      for (;;) out.write("0123456789");
    }));
    const std::size_t before = take_all(far.native_handle()).size();
    CHECK(before > 0);
    near.write_all("after");
    CHECK(take_all(far.native_handle()) == "after");
  });
}

TEST_CASE("the end of a writer can be interrupted, and the interruption is thrown later",
          "[writer]") {
  run([] {
    auto ends = net::stream_pair();
    auto& near = ends.first;
    testing::fill(near.native_handle());
    bool ended = false;
    auto writing = spin([&near, &ended] {
      {
        writer out(near);
        out.write("x");
      }
      ended = true;
      snooze();
    });
    testing::until_waiting(writing);
    CHECK(writing.raise(oops()));
    CHECK_THROWS_AS(writing.await(), oops);
    CHECK(ended);
  });
}

TEST_CASE("a writer's end takes no news of others", "[writer]") {
  run([] {
    const auto fills = [](motet::pipe& way) {
      writer out(way, 100'000);
      out.write(std::string(99'999, 'x'));  // more than the pipe holds: the end waits
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

TEST_CASE("a writer whose scope is left normally writes although its time is up", "[writer]") {
  run([] {
    motet::pipe way = motet::pipe::open();
    CHECK(move_on_after(1ms, [&] {
      writer out(way);
      out.write("farewell");
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
  for (fiber_ref& each : current().children()) each.cancel();
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

TEST_CASE("what a fiber that was ended has not flushed is flushed by the writer", "[writer]") {
  run([] {
    scripted_stream to;
    {
      writer out(to);
      out.write("by the next ");
      end_children();
      CHECK(out.buffered() == 12);
      out.write("write");
      snooze();
      CHECK(to.writes == words{"by the next write"});
      out.write(", flush");
      end_children();
      out.flush();
      CHECK(to.written() == "by the next write, flush");
      out.write(" or end");
      end_children();
    }
    CHECK(to.written() == "by the next write, flush or end");
  });
}

TEST_CASE("a fiber that was ended before it has flushed all holds nobody up", "[writer]") {
  run([] {
    auto ends = net::stream_pair();
    auto& near = ends.first;
    {
      writer out(near);
      out.write("behind");
      end_children();
      near.write_all("before, ");
    }
    CHECK(take_all(ends.second.native_handle()) == "before, behind");

    auto writing = spin([&near] {
      writer out(near, 1 << 20);
      out.write(std::string(1 << 20, 'a'));  // more than the socket takes
      const at_end farewell{[&] { move_on_after(5ms, [&] { out.flush(); }); }};
      sleep();
    });
    testing::until_waiting(writing);
    sleep_for(1ms);
    writing.terminate(0s);
    CHECK_THROWS_AS(writing.await(), fiber_cancelled);
    CHECK(take_all(ends.second.native_handle()).size() > 0);
    near.write_all("after");
    CHECK(take_all(ends.second.native_handle()) == "after");
  });
}

TEST_CASE("the handler of a cancellation may write", "[writer]") {
  run([] {
    scripted_stream to;
    auto ended = spin([&] {
      writer out(to, 4);
      try {
        sleep();
      } catch (const cancelled&) {
        out.write("good");
        out.write("bye, all");
        throw;
      }
    });
    testing::until_waiting(ended);
    ended.cancel();
    CHECK_THROWS_AS(ended.await(), fiber_cancelled);
    CHECK(to.written() == "goodbye, all");
  });
}
