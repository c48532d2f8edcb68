// SPDX-License-Identifier: MIT
// The echo server of compare_echo.py with libuv: one thread, one loop, an answer is written at once
// if the socket takes it.
#include <uv.h>

#include <array>
#include <string>

#include "../bench_args.hpp"

namespace {

int check(int result, const char* what) {
  if (result < 0) bench::fail(std::string(what) + ": " + uv_strerror(result));
  return result;
}

struct connection {
  uv_tcp_t socket;
  std::array<char, 16 * 1024> buffer;
};

/// What the socket did not take.
struct rest {
  uv_write_t request;
  std::string bytes;
};

void end(uv_stream_t* stream) {
  uv_close(reinterpret_cast<uv_handle_t*>(stream),
           [](uv_handle_t* handle) { delete static_cast<connection*>(handle->data); });
}

void begin_reading(uv_stream_t* stream);

void write_rest(uv_stream_t* stream, const char* bytes, std::size_t size) {
  uv_read_stop(stream);
  auto* left = new rest{{}, std::string(bytes, size)};
  left->request.data = left;
  const uv_buf_t buffer = uv_buf_init(left->bytes.data(), static_cast<unsigned>(size));
  const auto written = [](uv_write_t* request, int status) {
    uv_stream_t* from = request->handle;
    delete static_cast<rest*>(request->data);
    if (status < 0) return end(from);
    begin_reading(from);
  };
  check(uv_write(&left->request, stream, &buffer, 1, written), "uv_write");
}

void echo(uv_stream_t* stream, ssize_t size, const uv_buf_t* from) {
  if (size == 0) return;
  if (size < 0) return end(stream);
  const uv_buf_t buffer = uv_buf_init(from->base, static_cast<unsigned>(size));
  const int written = uv_try_write(stream, &buffer, 1);
  if (written == size) return;
  if (written < 0 && written != UV_EAGAIN) return end(stream);
  const auto done = static_cast<std::size_t>(written < 0 ? 0 : written);
  write_rest(stream, from->base + done, static_cast<std::size_t>(size) - done);
}

void begin_reading(uv_stream_t* stream) {
  const auto give_room = [](uv_handle_t* handle, std::size_t, uv_buf_t* room) {
    connection& peer = *static_cast<connection*>(handle->data);
    *room = uv_buf_init(peer.buffer.data(), static_cast<unsigned>(peer.buffer.size()));
  };
  check(uv_read_start(stream, give_room, &echo), "uv_read_start");
}

void accept_one(uv_stream_t* listener, int status) {
  check(status, "uv_listen");
  auto* peer = new connection;
  check(uv_tcp_init(listener->loop, &peer->socket), "uv_tcp_init");
  peer->socket.data = peer;
  auto* stream = reinterpret_cast<uv_stream_t*>(&peer->socket);
  check(uv_accept(listener, stream), "uv_accept");
  begin_reading(stream);
}

}  // namespace

int main(int argc, char** argv) {
  double port = 0;
  bench::parse_options(argc, argv, {{"--port", &port, 0, 65535}});
  bench::raise_file_limit();
  uv_loop_t* loop = uv_default_loop();
  uv_tcp_t listener;
  check(uv_tcp_init(loop, &listener), "uv_tcp_init");
  const int fd = bench::listen_on_loopback(static_cast<in_port_t>(port), SOCK_NONBLOCK);
  check(uv_tcp_open(&listener, fd), "uv_tcp_open");
  check(uv_listen(reinterpret_cast<uv_stream_t*>(&listener), 4096, &accept_one), "uv_listen");
  uv_signal_t stop;
  check(uv_signal_init(loop, &stop), "uv_signal_init");
  check(uv_signal_start(
            &stop, [](uv_signal_t* handle, int) { uv_stop(handle->loop); }, SIGTERM),
        "uv_signal_start");
  uv_run(loop, UV_RUN_DEFAULT);
}
