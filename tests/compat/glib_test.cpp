// SPDX-License-Identifier: MIT
// Fibers in GLib's loop, which serve GLib's own clients from the same thread.
#include <gio/gio.h>
#include <glib-unix.h>

#include <chrono>
#include <memory>
#include <motet/motet.hpp>
#include <motet/runtime/embed.hpp>
#include <string>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;

namespace {

struct unreference {
  void operator()(void* object) const noexcept { g_object_unref(object); }
};
template <typename T>
using object = std::unique_ptr<T, unreference>;

/// A loop of GLib's in which this thread's fibers run.
class glib_loop {
 public:
  glib_loop()
      : loop_(g_main_loop_new(nullptr, FALSE)),
        source_(g_unix_fd_add(poll_descriptor(), G_IO_IN, &on_ready, nullptr)) {}
  glib_loop(const glib_loop&) = delete;
  glib_loop& operator=(const glib_loop&) = delete;
  ~glib_loop() {
    g_source_remove(source_);
    g_main_loop_unref(loop_);
  }
  void run() { g_main_loop_run(loop_); }
  void quit() { g_main_loop_quit(loop_); }

 private:
  static gboolean on_ready(gint, GIOCondition, gpointer) {
    run_ready();
    return G_SOURCE_CONTINUE;
  }

  GMainLoop* loop_;
  guint source_;
};

/// A client by GLib's asynchronous streams: asks so many times, and counts the right answers.
struct client {
  client(glib_loop& all_run_in, int& are_left) : loop(all_run_in), clients_left(are_left) {}

  void connect(std::uint16_t port) {
    const object<GInetAddress> host(g_inet_address_new_loopback(G_SOCKET_FAMILY_IPV4));
    const object<GSocketAddress> address(g_inet_socket_address_new(host.get(), port));
    const object<GSocketClient> maker(g_socket_client_new());
    g_socket_client_connect_async(maker.get(), G_SOCKET_CONNECTABLE(address.get()), nullptr,
                                  &connected, this);
  }

  static void connected(GObject* source, GAsyncResult* result, gpointer self) {
    auto& me = *static_cast<client*>(self);
    me.connection.reset(g_socket_client_connect_finish(G_SOCKET_CLIENT(source), result, nullptr));
    me.ask();
  }

  void ask() {
    if (connection == nullptr || remaining-- == 0) {
      connection.reset();
      if (--clients_left == 0) loop.quit();
      return;
    }
    GOutputStream* stream = g_io_stream_get_output_stream(G_IO_STREAM(connection.get()));
    g_output_stream_write_all_async(stream, "hello\n", 6, G_PRIORITY_DEFAULT, nullptr, &asked,
                                    this);
  }

  static void asked(GObject* source, GAsyncResult* result, gpointer self) {
    auto& me = *static_cast<client*>(self);
    g_output_stream_write_all_finish(G_OUTPUT_STREAM(source), result, nullptr, nullptr);
    GInputStream* stream = g_io_stream_get_input_stream(G_IO_STREAM(me.connection.get()));
    g_input_stream_read_all_async(stream, me.text, sizeof me.text, G_PRIORITY_DEFAULT, nullptr,
                                  &answered, self);
  }

  static void answered(GObject* source, GAsyncResult* result, gpointer self) {
    auto& me = *static_cast<client*>(self);
    gsize size = 0;
    g_input_stream_read_all_finish(G_INPUT_STREAM(source), result, &size, nullptr);
    if (std::string(me.text, size) == "hello!\n") ++me.right;
    me.ask();
  }

  glib_loop& loop;
  int& clients_left;
  object<GSocketConnection> connection;
  char text[7] = {};
  int remaining = 20;
  int right = 0;
};

}  // namespace

TEST_CASE("motet::run_ready() runs fibers in GLib's loop, which serve GLib's own clients",
          "[glib][embed]") {
  if (testing::on_sim()) return;
  run([] {
    glib_loop loop;
    net::tcp_listener listener(net::endpoint::loopback(0));
    auto server = spin([&] {
      listener.serve([](net::tcp_stream peer) {
        reader lines(peer);
        while (const auto line = lines.line()) peer.write_all(std::string(*line) + "!\n");
      });
    });
    int clients_left = 4;
    std::vector<std::unique_ptr<client>> clients;
    for (int i = 0; i < 4; ++i) {
      clients.push_back(std::make_unique<client>(loop, clients_left));
      clients.back()->connect(listener.local_endpoint().port());
    }
    loop.run();
    for (const auto& entry : clients) CHECK(entry->right == 20);
    server.cancel();
    CHECK_THROWS_AS(server.await(), fiber_cancelled);
  });
}

TEST_CASE("motet::run_ready() lets fibers and timers of GLib take turns", "[glib][embed]") {
  if (testing::on_sim()) return;
  run([] {
    glib_loop loop;
    int slept = 0;
    int ticks = 0;
    auto sleeper = spin([&] {
      for (; slept < 10; ++slept) sleep_for(2ms);
      loop.quit();
    });
    const guint timer = g_timeout_add(
        1,
        [](gpointer count) -> gboolean {
          ++*static_cast<int*>(count);
          return G_SOURCE_CONTINUE;
        },
        &ticks);
    loop.run();
    g_source_remove(timer);
    CHECK(slept == 10);
    CHECK(ticks >= 5);
    sleeper.await();
  });
}
