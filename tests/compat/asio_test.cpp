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
  explicit pipe_ends(asio::io_context& io) : read_end(io), write_end(io) {
    asio::connect_pipe(read_end, write_end);
  }
  asio::readable_pipe read_end;
  asio::writable_pipe write_end;
};

/// Something that calls its handler with `values` in the loop.
template <typename... Values, typename Token>
auto async_give(asio::io_context& io, Token&& token, Values... values) {
  return asio::async_initiate<Token, void(Values...)>(
      [&io](auto handler, auto... items) {
        asio::post(io, [handler = std::move(handler), ... items = std::move(items)]() mutable {
          handler(std::move(items)...);
        });
      },
      token, std::move(values)...);
}

}  // namespace

TEST_CASE("compat::use_fiber makes a fiber wait for an operation of Asio", "[asio]") {
  loop_thread asio_loop;
  run([&] {
    pipe_ends line(asio_loop.io);
    asio::steady_timer timer(asio_loop.io, 1ms);
    timer.async_wait(use_fiber);
    auto reads = spin([&] {
      std::array<char, 5> text;
      CHECK(asio::async_read(line.read_end, asio::buffer(text), use_fiber) == 5);
      return std::string(text.data(), text.size());
    });
    CHECK(asio::async_write(line.write_end, asio::buffer("hel", 3), use_fiber) == 3);
    CHECK(asio::async_write(line.write_end, asio::buffer("lo", 2), use_fiber) == 2);
    CHECK(reads.await() == "hello");
    line.write_end.close();
    char byte = 0;
    CHECK(testing::error_of([&] {
            asio::async_read(line.read_end, asio::buffer(&byte, 1), use_fiber);
          }) == asio::error::eof);
  });
}

TEST_CASE("compat::use_fiber returns or throws what the operation gives its handler", "[asio]") {
  loop_thread asio_loop;
  run([&] {
    async_give(asio_loop.io, use_fiber);
    CHECK(async_give(asio_loop.io, use_fiber, 3) == 3);
    const std::tuple<int, std::string> pair =
        async_give(asio_loop.io, use_fiber, 1, std::string("a"));
    CHECK(pair == std::tuple<int, std::string>(1, "a"));
    CHECK(async_give(asio_loop.io, use_fiber, std::error_code(), 4) == 4);
    async_give(asio_loop.io, use_fiber, std::exception_ptr());
    CHECK_THROWS_AS(async_give(asio_loop.io, use_fiber, std::make_exception_ptr(oops()), 4), oops);
    CHECK(*async_give(asio_loop.io, use_fiber, std::make_unique<int>(5)) == 5);
    auto dropped = std::make_unique<asio::io_context>();
    auto waits = spin([&] { async_give(*dropped, use_fiber, 1); });
    until_waiting(waits);
    dropped.reset();
    CHECK_THROWS_AS(waits.await(), broken_resumer);
  });
}

TEST_CASE("compat::use_fiber ends the operation when the fiber is interrupted", "[asio]") {
  loop_thread asio_loop;
  run([&] {
    asio::steady_timer timer(asio_loop.io, 1h);
    CHECK_FALSE(move_on_after(1ms, [&] { timer.async_wait(use_fiber); }));
    pipe_ends line(asio_loop.io);
    std::array<char, 4> text{};
    auto reads =
        spin([&] { return asio::async_read(line.read_end, asio::buffer(text), use_fiber); });
    until_waiting(reads);
    reads.raise(oops());
    CHECK_THROWS_AS(reads.await(), oops);
    // One that cannot be called off: its result counts, and the interruption comes later.
    const auto slow = [&] {
      return asio::async_initiate<const compat::use_fiber_t, void(int)>(
          [&](auto handler) {
            auto wakes = std::make_shared<asio::steady_timer>(asio_loop.io, 5ms);
            wakes->async_wait(
                [wakes, handler = std::move(handler)](std::error_code) mutable { handler(6); });
          },
          use_fiber);
    };
    int result = 0;
    auto late = spin([&] {
      result = slow();
      snooze();
    });
    until_waiting(late);
    late.raise(oops());
    CHECK_THROWS_AS(late.await(), oops);
    CHECK(result == 6);
    result = 0;
    CHECK_FALSE(move_on_after(1ms, [&] {
      result = slow();
      snooze();
    }));
    CHECK(result == 6);
  });
}

TEST_CASE("compat::asio_context runs handlers of Asio on fibers", "[asio]") {
  loop_thread asio_loop;
  run([&] {
    const int home = this_thread();
    compat::asio_context fibers(here());
    asio::steady_timer timer(asio_loop.io, 1ms);
    event done;
    timer.async_wait(asio::bind_executor(fibers.get_executor(), [&](std::error_code error) {
      CHECK_FALSE(error);
      CHECK(this_thread() == home);
      sleep_for(1ms);  // as only a fiber can
      done.set();
    }));
    done.wait();
    const asio::any_io_executor executor_of_fibers = fibers.get_executor();
    promise<int> thread_number;
    asio::post(executor_of_fibers, [&] { thread_number.set_value(this_thread()); });
    CHECK(thread_number.get_future().get() == home);
    CHECK(fibers.get_executor() == fibers.get_executor());
  });
}

TEST_CASE("compat::asio_place lets a portal take a fiber to an Asio loop and back",
          "[asio][portal]") {
  loop_thread asio_loop;
  run([&] {
    const int home = this_thread();
    int loop = 0;
    asio::post(asio_loop.io, [&] { loop = this_thread(); });
    compat::asio_place place(asio_loop.io.get_executor());
    {
      const portal passage(place);
      CHECK(this_thread() == loop);
    }
    CHECK(this_thread() == home);
  });
}

TEST_CASE("compat::asio_host runs fibers in Asio's loop, which serve Asio's own clients",
          "[asio][embed]") {
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
      std::string question = "hello\n";
      std::string answer;
      int remaining = rounds;
    };
    std::vector<std::unique_ptr<client>> askers;
    int right = 0;
    int endings = 0;
    const std::function<void(client&)> ask = [&](client& asker) {
      if (asker.remaining-- == 0) {
        asker.socket.close();
        if (++endings == clients) io.stop();
        return;
      }
      asio::async_write(asker.socket, asio::buffer(asker.question),
                        [&](std::error_code, std::size_t) {
                          asker.answer.resize(7);
                          asio::async_read(asker.socket, asio::buffer(asker.answer),
                                           [&](std::error_code, std::size_t) {
                                             if (asker.answer == "hello!\n") ++right;
                                             ask(asker);
                                           });
                        });
    };
    const tcp::endpoint address(asio::ip::address_v4::loopback(), listener.local_endpoint().port());
    for (int i = 0; i < clients; ++i) {
      client& asker = *askers.emplace_back(std::make_unique<client>(io));
      asker.socket.async_connect(address, [&](std::error_code) { ask(asker); });
    }
    // A fiber of the same thread as a client of Asio's sockets.
    bool answered = false;
    spin([&] {
      tcp::socket socket(io);
      socket.async_connect(address, use_fiber);
      asio::async_write(socket, asio::buffer("one\n", 4), use_fiber);
      std::array<char, 5> text;
      asio::async_read(socket, asio::buffer(text), use_fiber);
      answered = std::string(text.data(), 5) == "one!\n";
    });
    io.run();
    CHECK(right == clients * rounds);
    CHECK(answered);
    server.cancel();
    host.reset();
    CHECK_THROWS_AS(server.await(), fiber_cancelled);
  });
}

TEST_CASE("compat::asio_host lets the exception of a fiber leave Asio's loop", "[asio][embed]") {
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
