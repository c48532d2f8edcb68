// SPDX-License-Identifier: MIT
// One thread, GLib's loop: a fiber counts while a timer of GLib's ticks, and ends the loop.
#include <glib-unix.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <motet/motet.hpp>
#include <motet/runtime/embed.hpp>

using namespace std::chrono_literals;

namespace {

struct host {
  GMainLoop* loop = g_main_loop_new(nullptr, FALSE);
  std::exception_ptr failure;  // it must not pass through GLib's frames
};

gboolean run_fibers(gint, GIOCondition, gpointer data) {
  auto& self = *static_cast<host*>(data);
  try {
    motet::run_ready();
  } catch (...) {
    self.failure = std::current_exception();
    g_main_loop_quit(self.loop);
  }
  return G_SOURCE_CONTINUE;
}

gboolean tick(gpointer ticks) {
  ++*static_cast<int*>(ticks);
  return G_SOURCE_CONTINUE;
}

}  // namespace

int main() {
  host self;
  int ticks = 0;
  g_unix_fd_add(motet::poll_descriptor(), G_IO_IN, run_fibers, &self);
  g_timeout_add(10, tick, &ticks);
  motet::spin([&] {
    for (int i = 3; i > 0; --i) {
      std::printf("%d\n", i);
      motet::sleep_for(50ms);
    }
    g_main_loop_quit(self.loop);
  });
  g_main_loop_run(self.loop);
  if (self.failure) std::rethrow_exception(self.failure);
  std::printf("%s\n", ticks > 3 ? "and the loop went on" : "the loop stood still");
  g_main_loop_unref(self.loop);
}
