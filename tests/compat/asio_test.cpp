// SPDX-License-Identifier: MIT
// Fibers and standalone Asio, each in the other's loop.
#include <array>
#include <asio/bind_executor.hpp>
#include <asio/buffer.hpp>
#include <asio/connect_pipe.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/readable_pipe.hpp>
#include <asio/steady_timer.hpp>
#include <asio/writable_pipe.hpp>
#include <asio/write.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <motet/compat/asio.hpp>
#include <motet/motet.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "places.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using asio::ip::tcp;
using compat::use_fiber;
using testing::oops;
using testing::this_thread;
using testing::until_waiting;

namespace {

/// An Asio loop on a thread of its own.
struct loop_thread {
  asio::io_context io;
  asio::executor_work_guard<asio::io_context::executor_type> busy{io.get_executor()};
  std::thread thread{[this] { io.run(); }};
  ~loop_thread() {
    busy.reset();
    thread.join();
  }
};

struct pipe_ends {
  explicit pipe_ends(asio::io_context& io) : from(io), to(io) { asio::connect_pipe(from, to); }
  asio::readable_pipe from;
  asio::writable_pipe to;
};

/// Something that calls its handler with `values` in the loop.
template <typename... Values, typename Token>
auto async_give(asio::io_context& io, Token&& token, Values... values) {
  return asio::async_initiate<Token, void(Values...)>(
      [&io](auto handler, auto... given) {
        asio::post(io, [handler = std::move(handler), ... given = std::move(given)]() mutable {
          handler(std::move(given)...);
        });
      },
      token, std::move(values)...);
}

}  // namespace

TEST_CASE("a fiber waits for what Asio does", "[asio]") {
  loop_thread other;
  run([&] {
    pipe_ends line(other.io);
    asio::steady_timer timer(other.io, 1ms);
    timer.async_wait(use_fiber);
    auto reads = spin([&] {
      std::array<char, 5> text;
      CHECK(asio::async_read(line.from, asio::buffer(text), use_fiber) == 5);
      return std::string(text.data(), text.size());
    });
    CHECK(asio::async_write(line.to, asio::buffer("hel", 3), use_fiber) == 3);
    CHECK(asio::async_write(line.to, asio::buffer("lo", 2), use_fiber) == 2);
    CHECK(reads.await() == "hello");
    line.to.close();
    char byte = 0;
    CHECK(testing::error_of([&] {
            asio::async_read(line.from, asio::buffer(&byte, 1), use_fiber);
          }) == asio::error::eof);
  });
}

TEST_CASE("what a fiber gets from an operation", "[asio]") {
  loop_thread other;
  run([&] {
    async_give(other.io, use_fiber);
    CHECK(async_give(other.io, use_fiber, 3) == 3);
    const std::tuple<int, std::string> both = async_give(other.io, use_fiber, 1, std::string("a"));
    CHECK(both == std::tuple<int, std::string>(1, "a"));
    CHECK(async_give(other.io, use_fiber, std::error_code(), 4) == 4);
    async_give(other.io, use_fiber, std::exception_ptr());
    CHECK_THROWS_AS(async_give(other.io, use_fiber, std::make_exception_ptr(oops()), 4), oops);
    CHECK(*async_give(other.io, use_fiber, std::make_unique<int>(5)) == 5);
    auto dropped = std::make_unique<asio::io_context>();
    auto waits = spin([&] { async_give(*dropped, use_fiber, 1); });
    until_waiting(waits);
    dropped.reset();
    CHECK_THROWS_AS(waits.await(), broken_resumer);
  });
}

TEST_CASE("an interruption ends the operation", "[asio]") {
  loop_thread other;
  run([&] {
    asio::steady_timer timer(other.io, 1h);
    CHECK_FALSE(move_on_after(1ms, [&] { timer.async_wait(use_fiber); }));
    pipe_ends line(other.io);
    std::array<char, 4> text{};
    auto reads = spin([&] { return asio::async_read(line.from, asio::buffer(text), use_fiber); });
    until_waiting(reads);
    reads.raise(oops());
    CHECK_THROWS_AS(reads.await(), oops);
    // One that cannot be called off: its result counts, and the interruption comes later.
    const auto slow = [&] {
      return asio::async_initiate<const compat::use_fiber_t, void(int)>(
          [&](auto handler) {
            auto wakes = std::make_shared<asio::steady_timer>(other.io, 5ms);
            wakes->async_wait(
                [wakes, handler = std::move(handler)](std::error_code) mutable { handler(6); });
          },
          use_fiber);
    };
    int got = 0;
    auto late = spin([&] {
      got = slow();
      snooze();
    });
    until_waiting(late);
    late.raise(oops());
    CHECK_THROWS_AS(late.await(), oops);
    CHECK(got == 6);
    got = 0;
    CHECK_FALSE(move_on_after(1ms, [&] {
      got = slow();
      snooze();
    }));
    CHECK(got == 6);
  });
}

TEST_CASE("handlers of Asio run on fibers", "[asio]") {
  loop_thread other;
  run([&] {
    const int home = this_thread();
    compat::asio_context fibers(here());
    asio::steady_timer timer(other.io, 1ms);
    event over;
    timer.async_wait(asio::bind_executor(fibers.get_executor(), [&](std::error_code error) {
      CHECK_FALSE(error);
      CHECK(this_thread() == home);
      sleep_for(1ms);  // as only a fiber can
      over.set();
    }));
    over.wait();
    const asio::any_io_executor any = fibers.get_executor();
    promise<int> where;
    asio::post(any, [&] { where.set_value(this_thread()); });
    CHECK(where.get_future().get() == home);
    CHECK(fibers.get_executor() == fibers.get_executor());
  });
}

TEST_CASE("a fiber goes to an Asio loop and back", "[asio][portal]") {
  loop_thread other;
  run([&] {
    const int home = this_thread();
    int loop = 0;
    asio::post(other.io, [&] { loop = this_thread(); });
    compat::asio_place place(other.io.get_executor());
    {
      const portal there(place);
      CHECK(this_thread() == loop);
    }
    CHECK(this_thread() == home);
  });
}

TEST_CASE("one thread serves Asio's own clients by fibers, in Asio's loop", "[asio][embed]") {
  if (testing::on_sim()) return;
  run([] {
    asio::io_context io;
    std::optional<compat::asio_host> host(std::in_place, io.get_executor());
    net::tcp_listener listener(net::endpoint::loopback(0));
    auto server = spin([&] {
      listener.serve([](net::tcp_stream peer) {
        reader lines(peer);
        while (const auto line = lines.line()) peer.write_all(std::string(*line) + "!\n");
      });
    });
    constexpr int clients = 8;
    constexpr int rounds = 20;
    struct client {
      explicit client(asio::io_context& io) : socket(io) {}
      tcp::socket socket;
      std::string sent = "hello\n";
      std::string got;
      int left = rounds;
    };
    std::vector<std::unique_ptr<client>> all;
    int right = 0;
    int ended = 0;
    const std::function<void(client&)> ask = [&](client& one) {
      if (one.left-- == 0) {
        one.socket.close();
        if (++ended == clients) io.stop();
        return;
      }
      asio::async_write(one.socket, asio::buffer(one.sent), [&](std::error_code, std::size_t) {
        one.got.resize(7);
        asio::async_read(one.socket, asio::buffer(one.got), [&](std::error_code, std::size_t) {
          if (one.got == "hello!\n") ++right;
          ask(one);
        });
      });
    };
    const tcp::endpoint to(asio::ip::address_v4::loopback(), listener.local_endpoint().port());
    for (int i = 0; i < clients; ++i) {
      client& one = *all.emplace_back(std::make_unique<client>(io));
      one.socket.async_connect(to, [&](std::error_code) { ask(one); });
    }
    // A fiber of the same thread as a client of Asio's sockets.
    bool asked = false;
    spin([&] {
      tcp::socket mine(io);
      mine.async_connect(to, use_fiber);
      asio::async_write(mine, asio::buffer("one\n", 4), use_fiber);
      std::array<char, 5> text;
      asio::async_read(mine, asio::buffer(text), use_fiber);
      asked = std::string(text.data(), 5) == "one!\n";
    });
    io.run();
    CHECK(right == clients * rounds);
    CHECK(asked);
    server.cancel();
    host.reset();
    CHECK_THROWS_AS(server.await(), fiber_cancelled);
  });
}

TEST_CASE("a failure of a fiber leaves Asio's loop", "[asio][embed]") {
  if (testing::on_sim()) return;
  run([] {
    asio::io_context io;
    const compat::asio_host host(io.get_executor());
    spin([] {
      sleep_for(1ms);
      throw oops();
    });
    CHECK_THROWS_AS(io.run(), oops);
  });
}
