// SPDX-License-Identifier: MIT
// Servers that outlive what goes wrong with their connections, on one thread and on several.
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <map>
#include <motet/motet.hpp>
#include <motet/observe/debug.hpp>
#include <mutex>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "io/scratch.hpp"
#include "io/servers.hpp"
#include "io/streams.hpp"
#include "sockets.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using net::endpoint;
using net::tcp_listener;
using net::tcp_stream;
using testing::bytes_of;
using testing::connect_when_served;
using testing::echo;
using testing::echoes;
using testing::error_of;
using testing::free_port;
using testing::lower_limit;
using testing::read_text;
using testing::read_to_end;
using testing::reset_when_closed;
using testing::until_waiting;

namespace {

/// Whether a dump says of the fiber that runs that it was spun at `site`.
bool is_spun_at(const std::string& site) {
  std::ostringstream text;
  dump(text);
  std::istringstream lines(text.str());
  for (std::string line; std::getline(lines, line);) {
    if (line.find("running") != line.npos) return line.find(site + ':') != line.npos;
  }
  return false;
}

constexpr call_site elsewhere{"elsewhere.cpp", 7};

}  // namespace

TEST_CASE("tcp_listener::serve() spins a connection's fiber at the site of its caller", "[net]") {
  run([] {
    std::atomic<int> matches = 0;
    const auto look_for = [&](const std::string& site) {
      return [&matches, site](const auto&) { matches += is_spun_at(site) ? 1 : 0; };
    };
    const auto local_handler = look_for("serve_test.cpp");
    const auto elsewhere_handler = look_for("elsewhere.cpp");
    const auto visit = [&](const auto& serve) {
      tcp_listener listener(endpoint::loopback(0));
      group servers;
      servers.spin({.transient = true}, [&] { serve(listener); });
      tcp_stream peer = tcp_stream::connect(listener.local_endpoint());
      CHECK(read_to_end(peer).empty());
    };
    visit([&](tcp_listener& listener) { listener.serve(local_handler); });
    visit([&](tcp_listener& listener) { listener.serve({.name = "guest"}, local_handler); });
    visit([&](tcp_listener& listener) { listener.serve(elsewhere_handler, {}, elsewhere); });
    visit([&](tcp_listener& listener) {
      listener.serve(net::serve_options(), elsewhere_handler, elsewhere);
    });
    CHECK(matches == 4);

    thread_pool pool(1);
    visit([&](tcp_listener& listener) { listener.serve(pool, {}, elsewhere_handler, elsewhere); });
    const endpoint address = free_port();
    group servers;
    servers.spin({.transient = true},
                 [&] { tcp_listener::serve(pool, address, {}, elsewhere_handler, elsewhere); });
    tcp_stream guest = connect_when_served(address);
    CHECK(read_to_end(guest).empty());
    CHECK(matches >= 6);  // a connection made in vain is one more

    const testing::scratch_directory root;
    net::unix_listener local(endpoint::unix_path(root.name() + "/socket"));
    group local_server;
    local_server.spin({.transient = true}, [&] { local.serve(elsewhere_handler, {}, elsewhere); });
    matches = 0;
    auto peer = net::unix_stream::connect(local.local_endpoint());
    std::byte end[1];
    CHECK(peer.read(end) == 0);
    CHECK(matches == 1);
  });
}

TEST_CASE("tcp_listener::serve() goes on though on_error throws", "[net]") {
  int unhandled = 0;
  options settings;
  settings.on_unhandled = [&](const std::exception_ptr&) { ++unhandled; };
  run(settings, [&] {
    tcp_listener listener(endpoint::loopback(0));
    group server;
    auto acceptor = server.spin([&] {
      listener.serve([](const tcp_stream&) { throw std::runtime_error("handler"); },
                     [](const std::exception_ptr&) { throw std::runtime_error("on_error"); });
    });
    for (int i = 0; i < 2; ++i) {
      tcp_stream peer = tcp_stream::connect(listener.local_endpoint());
      CHECK(read_to_end(peer).empty());
    }
    CHECK(acceptor.state() == fiber_state::waiting);
    acceptor.cancel();
  });
  CHECK(unhandled == 2);
}

TEST_CASE("tcp_listener::serve() runs a fiber for each connection, all at once", "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    const endpoint address = listener.local_endpoint();
    auto server = spin([&] { listener.serve(echo); });
    std::vector<tcp_stream> clients;
    for (int i = 0; i < 20; ++i) clients.push_back(tcp_stream::connect(address));
    for (int round = 0; round < 3; ++round) {
      for (tcp_stream& client : clients) CHECK(echoes(client, "round " + std::to_string(round)));
    }
    server.cancel();
    CHECK_THROWS_AS(server.await(), fiber_cancelled);
    for (tcp_stream& client : clients) CHECK(read_to_end(client).empty());
  });
}

TEST_CASE("tcp_listener::serve() reports a handler that fails, and ends its connection", "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    const endpoint address = listener.local_endpoint();
    std::vector<std::string> failures;
    group servers;
    auto server = servers.spin([&] {
      listener.serve(
          [](tcp_stream peer) {
            const std::string text = read_text(peer);
            if (text == "fail") throw std::runtime_error("as it was told");
            peer.write_all(bytes_of(text));
          },
          [&](const std::exception_ptr& error) {
            try {
              std::rethrow_exception(error);
            } catch (const std::exception& e) {
              failures.emplace_back(e.what());
            }
          });
    });
    tcp_stream good = tcp_stream::connect(address);
    for (int i = 0; i < 3; ++i) {
      tcp_stream bad = tcp_stream::connect(address);
      bad.write_all(bytes_of("fail"));
      CHECK(read_to_end(bad).empty());
    }
    CHECK(echoes(good, "still here"));
    CHECK(failures == std::vector<std::string>(3, "as it was told"));
    server.cancel();
  });
}

TEST_CASE("tcp_listener::serve() ends and reports the children that a handler leaves behind",
          "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    const endpoint address = listener.local_endpoint();
    int failures = 0;
    const auto fails_at_its_end = [] {
      try {
        sleep();
      } catch (const cancelled&) {
        throw std::runtime_error("at its end");
      }
    };
    auto server = spin([&] {
      listener.serve(
          [&](tcp_stream peer) {
            spin(fails_at_its_end);
            spin(fails_at_its_end);
            snooze();
            if (read_text(peer) == "fail") throw std::runtime_error("as it was told");
          },
          [&](const std::exception_ptr&) { ++failures; });
    });
    for (const char* text : {"go", "fail"}) {
      tcp_stream peer = tcp_stream::connect(address);
      peer.write_all(bytes_of(text));
      CHECK(read_to_end(peer).empty());
      snooze();
    }
    CHECK(failures == 5);
    const tcp_stream last_peer = tcp_stream::connect(address);
    sleep_for(1ms);
    server.cancel();
    CHECK_THROWS_AS(server.await(), fiber_cancelled);
    CHECK(failures == 7);
  });
}

TEST_CASE("tcp_listener::serve() without on_error reports each kind of failure once, with a count",
          "[net]") {
  std::vector<std::string> notices;
  options settings;
  settings.on_notice = [&](std::string_view line) { notices.emplace_back(line); };
  run(settings, [&] {
    tcp_listener listener(endpoint::loopback(0));
    const endpoint address = listener.local_endpoint();
    auto server = spin([&] {
      listener.serve([](tcp_stream peer) {
        const std::string text = read_text(peer);
        if (text == "r") throw std::runtime_error("boom");
        if (text == "l") throw std::logic_error("bang");
        throw 42;
      });
    });
    for (const char* kind : {"r", "l", "r", "i", "r", "l"}) {
      tcp_stream peer = tcp_stream::connect(address);
      peer.write_all(bytes_of(kind));
      CHECK(read_to_end(peer).empty());
    }
    CHECK(notices.size() == 3);
    server.cancel();
    CHECK_THROWS_AS(server.await(), fiber_cancelled);
  });
  const auto count = [&](std::string_view text) {
    return std::count_if(notices.begin(), notices.end(), [&](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  };
  CHECK(count("boom") == 1);
  CHECK(count("bang") == 1);
  CHECK(count("int") == 1);
  CHECK(count("runtime_error: 3 in all") == 1);
  CHECK(count("logic_error: 2 in all") == 1);
  CHECK(notices.size() == 5);
}

TEST_CASE("tcp_listener::serve() does not report a handler that was cancelled", "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    int failures = 0;
    fiber_ref handler;
    auto server = spin([&] {
      listener.serve(
          [&](tcp_stream peer) {
            handler = current();
            read_text(peer);
          },
          [&](const std::exception_ptr&) { ++failures; });
    });
    tcp_stream first = tcp_stream::connect(listener.local_endpoint());
    while (!handler || handler.state() != fiber_state::waiting) snooze();
    handler.cancel();
    CHECK(read_to_end(first).empty());
    tcp_stream second = tcp_stream::connect(listener.local_endpoint());
    const fiber_ref first_handler = handler;
    while (handler == first_handler) snooze();
    CHECK(failures == 0);
    server.cancel();
    CHECK_THROWS_AS(server.await(), fiber_cancelled);
    CHECK(failures == 0);
  });
}

TEST_CASE("tcp_listener::serve() throws for a listener on which another thread accepts", "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    motet::thread worker([&] { listener.accept(); });
    worker.call([] {});  // runs when the thread's function waits
    CHECK_THROWS_AS(listener.serve([](tcp_stream) {}), std::logic_error);
    worker.cancel();
    CHECK_THROWS_AS(worker.await(), fiber_cancelled);
  });
}

TEST_CASE("tcp_listener::serve() ends at a deadline once every connection has cleaned up",
          "[net]") {
  struct farewell {
    int& open;
    int& closings;
    farewell(int& o, int& c) : open(o), closings(c) { ++open; }
    farewell(const farewell&) = delete;
    farewell& operator=(const farewell&) = delete;
    ~farewell() {
      snooze();  // clean-up may switch
      ++closings;
    }
  };
  for (const bool by_deadline : {true, false}) {
    run([&] {
      tcp_listener listener(endpoint::loopback(0));
      const endpoint address = listener.local_endpoint();
      std::vector<tcp_stream> clients;
      for (int i = 0; i < 50; ++i) clients.push_back(tcp_stream::connect(address));
      int openings = 0;
      int closings = 0;
      const auto serve_all = [&] {
        listener.serve([&](tcp_stream peer) {
          const farewell guard(openings, closings);
          read_text(peer);
        });
      };
      if (by_deadline) {
        CHECK_FALSE(move_on_after(10ms, serve_all));
        CHECK(openings > 0);
      } else {
        auto server = spin(serve_all);
        while (openings < 50) snooze();
        server.cancel();
        CHECK_THROWS_AS(server.await(), fiber_cancelled);
      }
      CHECK(closings == openings);
      listener.close();
      for (tcp_stream& client : clients) {
        std::error_code error;
        std::byte byte[1];
        CHECK(client.read(byte, error) == 0);
      }
    });
  }
}

TEST_CASE("tcp_listener::serve() reports a handler that fails while serve() ends", "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    std::vector<std::string> failures;
    auto server = spin([&] {
      listener.serve(
          [](tcp_stream peer) {
            try {
              read_text(peer);
            } catch (const cancelled&) {
              throw std::runtime_error("on the way out");
            }
          },
          [&](const std::exception_ptr& error) {
            try {
              std::rethrow_exception(error);
            } catch (const std::runtime_error& e) {
              failures.emplace_back(e.what());
            }
          });
    });
    tcp_stream first = tcp_stream::connect(listener.local_endpoint());
    tcp_stream second = tcp_stream::connect(listener.local_endpoint());
    for (int i = 0; i < 300; ++i) snooze();
    server.cancel();
    CHECK_THROWS_AS(server.await(), fiber_cancelled);
    CHECK(failures == std::vector<std::string>(2, "on the way out"));
  });
}

TEST_CASE("tcp_listener::serve() closes a connection that it accepts while it ends", "[net]") {
  run([] {
    const std::size_t descriptors = testing::open_descriptors();
    const std::size_t rounds = testing::scaled(2'000, testing::under_tsan ? 100 : 500);
    for (std::size_t round = 0; round < rounds; ++round) {
      tcp_listener listener(endpoint::loopback(0));
      auto server = spin([&] { listener.serve(echo); });
      until_waiting(server);
      tcp_stream peer = tcp_stream::connect(listener.local_endpoint());
      for (std::size_t i = 0; i < round % 8; ++i) snooze();
      server.cancel();
      try {
        server.await();
      } catch (const fiber_cancelled&) {
      }
      listener.close();
      std::error_code error;
      std::byte byte[1];
      REQUIRE(peer.read(byte, error) == 0);
    }
    CHECK(testing::open_descriptors() == descriptors);
  });
}

TEST_CASE("tcp_listener::serve() goes on when one of a thousand connections is reset", "[net]") {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const rlimit raised{std::max<rlim_t>(limit.rlim_cur, std::min<rlim_t>(limit.rlim_max, 4'096)),
                      limit.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &raised);
  const std::size_t fitting = raised.rlim_cur >= 2'200 ? 1'000 : raised.rlim_cur / 2 - 50;
  const std::size_t count = testing::under_tsan ? std::min<std::size_t>(fitting, 200) : fitting;
  run([&] {
    tcp_listener listener(endpoint::loopback(0), {.backlog = 4'096});
    const endpoint address = listener.local_endpoint();
    std::vector<std::string> failures;
    auto server = spin([&] {
      listener.serve(
          [](tcp_stream peer) {
            std::array<std::byte, 8> message;
            for (;;) {
              for (std::size_t had = 0; had < message.size();) {
                const std::size_t size = peer.read(std::span(message).subspan(had));
                if (size == 0) return;
                had += size;
              }
              peer.write_all(message);
            }
          },
          [&](const std::exception_ptr& error) {
            failures.push_back(error_of([&] { std::rethrow_exception(error); }).message());
          });
    });
    std::size_t right = 0;
    std::size_t connected = 0;
    group clients;
    for (std::size_t i = 0; i < count; ++i) {
      clients.spin([&, i] {
        tcp_stream stream = tcp_stream::connect(address);
        if (!echoes(stream, "first...")) return;
        ++connected;
        while (connected < count) snooze();  // all of them are open at once
        if (i == count / 2) {
          stream.write_all(bytes_of("half"));
          reset_when_closed(stream);
          return;
        }
        if (echoes(stream, "second..") && echoes(stream, "third...")) ++right;
      });
    }
    clients.await_all();
    CHECK(connected == count);
    CHECK(right == count - 1);
    while (failures.empty()) snooze();
    CHECK(failures ==
          std::vector<std::string>{std::make_error_code(std::errc::connection_reset).message()});
    server.cancel();
    CHECK_THROWS_AS(server.await(), fiber_cancelled);
  });
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

TEST_CASE("tcp_listener::serve() waits when descriptors run out, and goes on when there are some",
          "[net]") {
  run([] {
    tcp_listener listener(endpoint::loopback(0));
    const endpoint address = listener.local_endpoint();
    std::size_t served = 0;
    int failures = 0;
    auto server = spin([&] {
      listener.serve(
          [&](tcp_stream peer) {
            ++served;
            echo(std::move(peer));
          },
          [&](const std::exception_ptr&) { ++failures; });
    });
    tcp_stream early = tcp_stream::connect(address);
    CHECK(echoes(early, "early"));

    std::vector<tcp_stream> late;
    {
      std::vector<fd> sockets;  // made while there are descriptors
      for (int i = 0; i < 3; ++i) sockets.push_back(testing::make_tcp_socket());
      const lower_limit few(RLIMIT_NOFILE, 3);
      for (fd& socket : sockets) {
        io::connect(socket.get(), address.address(), address.length());
        late.emplace_back(std::move(socket));
      }
      sleep_for(10ms);
      CHECK(served <= 2);  // a ring's accept that was under way goes by the limit before
      CHECK(echoes(early, "meanwhile"));
    }
    for (tcp_stream& peer : late) CHECK(echoes(peer, "late"));
    CHECK(served == 4);
    CHECK(failures == 0);
    tcp_stream last = tcp_stream::connect(address);
    CHECK(echoes(last, "last"));
    server.cancel();
    CHECK_THROWS_AS(server.await(), fiber_cancelled);
  });
}

TEST_CASE("tcp_listener::serve() reports and closes a connection without a stack for its handler",
          "[net]") {
  options settings;
  settings.stack_size = std::size_t{512} << 20;  // a mapping of its own for each handler
  run(settings, [] {
    tcp_listener listener(endpoint::loopback(0));
    const endpoint address = listener.local_endpoint();
    int without_stack = 0;
    const std::size_t small = std::size_t{64} * 1024;
    auto server = spin({.name = "server", .stack_size = small}, [&] {
      listener.serve(echo, [&](const std::exception_ptr& error) {
        try {
          std::rethrow_exception(error);
        } catch (const stack_unavailable&) {
          ++without_stack;
        }
      });
    });
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const auto mapped = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    {
      const lower_limit little(RLIMIT_AS, mapped + (std::size_t{64} << 20));
      tcp_stream refused = tcp_stream::connect(address);
      CHECK(read_to_end(refused).empty());
      CHECK(without_stack == 1);
    }
    tcp_stream fine = tcp_stream::connect(address);
    CHECK(echoes(fine, "fine"));
    CHECK(without_stack == 1);
    server.cancel();
    CHECK_THROWS_AS(server.await(), fiber_cancelled);
  });
}

// On several threads

TEST_CASE("tcp_listener::serve() on a pool shares one port among its threads", "[net][pool]") {
  thread_pool pool(2);
  const endpoint address = free_port();
  std::mutex guarding;
  std::map<std::thread::id, int> served;
  group server;
  auto acceptor = server.spin([&] {
    tcp_listener::serve(pool, address, [&](tcp_stream peer) {
      {
        const std::lock_guard lock(guarding);
        ++served[std::this_thread::get_id()];
      }
      echo(std::move(peer));
    });
  });
  {
    std::vector<tcp_stream> clients;
    for (int i = 0; i < 100; ++i) clients.push_back(connect_when_served(address));
    for (tcp_stream& client : clients) CHECK(echoes(client, "to and fro"));
    const std::lock_guard lock(guarding);
    CHECK(served.size() == 2);  // all on one: once in 2^99
    CHECK(served.count(std::this_thread::get_id()) == 0);
  }
  CHECK(pool.submit([] { return 1; }).get() == 1);
  acceptor.cancel();
  server.await_all();
  std::error_code refused;
  tcp_stream::connect(address, refused);
  CHECK(refused == std::errc::connection_refused);
}

TEST_CASE("tcp_listener::serve() on a pool reports a failure on the thread of the connection",
          "[net][pool]") {
  thread_pool pool(2);
  const endpoint address = free_port();
  std::atomic<int> reports{0};
  group server;
  auto acceptor = server.spin([&] {
    tcp_listener::serve(
        pool, address, [](tcp_stream) { throw std::runtime_error("it fails"); },
        [&](const std::exception_ptr&) { ++reports; });
  });
  for (int i = 0; i < 10; ++i) {
    tcp_stream client = connect_when_served(address);
    CHECK(read_to_end(client).empty());
  }
  acceptor.cancel();
  server.await_all();
  CHECK(reports == 10);
}

TEST_CASE("tcp_listener::serve() on a pool rejects port 0, a port in use and a stopped pool",
          "[net][pool]") {
  thread_pool pool(2);
  const auto handler = [](tcp_stream) {};
  CHECK_THROWS_AS(tcp_listener::serve(pool, endpoint::loopback(0), handler), std::invalid_argument);
  tcp_listener alone(endpoint::loopback(0));
  const auto error = error_of([&] { tcp_listener::serve(pool, alone.local_endpoint(), handler); });
  CHECK(error == std::errc::address_in_use);
  pool.stop();
  CHECK_THROWS_AS(tcp_listener::serve(pool, free_port(), handler), executor_stopped);
}

TEST_CASE("thread_pool::stop() ends a tcp_listener::serve() on the pool", "[net][pool]") {
  thread_pool pool(2);
  const endpoint address = free_port();
  bool ended = false;
  auto server = spin([&] {
    try {
      tcp_listener::serve(pool, address, echo);
    } catch (const fiber_cancelled&) {
      ended = true;
    } catch (const executor_stopped&) {
      ended = true;  // a thread that had not begun to serve
    }
  });
  tcp_stream client = connect_when_served(address);
  CHECK(echoes(client, "still here"));
  pool.stop();
  server.await();
  CHECK(ended);
  CHECK(read_to_end(client).empty());
}
