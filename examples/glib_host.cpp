// SPDX-License-Identifier: MIT
// One thread, GLib's loop: a fiber counts while a timer of GLib's ticks, and ends the loop.
#include <glib-unix.h>

#include <chrono>
#include <cstdio>
#include <motet/embed.hpp>
#include <motet/motet.hpp>

using namespace std::chrono_literals;

namespace {

gboolean run_fibers(gint, GIOCondition, gpointer) {
  motet::run_ready();
  return G_SOURCE_CONTINUE;
}

gboolean tick(gpointer ticks) {
  ++*static_cast<int*>(ticks);
  return G_SOURCE_CONTINUE;
}

}  // namespace

int main() {
  GMainLoop* loop = g_main_loop_new(nullptr, FALSE);
  int ticks = 0;
  g_unix_fd_add(motet::poll_descriptor(), G_IO_IN, run_fibers, nullptr);
  g_timeout_add(10, tick, &ticks);
  motet::spin([&] {
    for (int i = 3; i > 0; --i) {
      std::printf("%d\n", i);
      motet::sleep_for(50ms);
    }
    g_main_loop_quit(loop);
  });
  g_main_loop_run(loop);
  std::printf("%s\n", ticks > 3 ? "and the loop went on" : "the loop stood still");
  g_main_loop_unref(loop);
}
