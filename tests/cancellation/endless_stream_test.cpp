// SPDX-License-Identifier: MIT
// Loops of calls that never have to wait: streams, and what reads and writes them.
#include <string_view>
#include <system_error>

#include "cancellation/endless_io.hpp"
#include "cancellation/endless_loop.hpp"

namespace {

using namespace testing;
using net::tcp_stream;

struct stream_pair {
  stream_pair() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
      throw std::runtime_error("socketpair");
    }
    client = tcp_stream(fd(ends[0]));
    server = tcp_stream(fd(ends[1]));
  }
  /// Takes what has come, without a word to motet.
  void drain() const { ::recv(server.native_handle(), room, sizeof room, MSG_DONTWAIT); }

  tcp_stream client;
  tcp_stream server;
  mutable char room[64];
};

/// A stream whose peer will send no more.
struct ended_stream : stream_pair {
  ended_stream() { server.shutdown(SHUT_WR); }
};

struct ended_pipe {
  ended_pipe() { ends.shutdown(SHUT_WR); }
  motet::pipe ends = motet::pipe::open();
};

/// A pipe with a byte in it.
struct filled_pipe {
  filled_pipe() { refill(); }
  void refill() { ::write(ends.native_handle(SHUT_WR), "a", 1) == 1 ? void() : throw oops(); }
  void drain() { ::read(ends.native_handle(SHUT_RD), &room, 1) == 1 ? void() : throw oops(); }
  motet::pipe ends = motet::pipe::open();
  char room = 0;
};

/// A reader that has read all of a long file ahead.
struct far_ahead {
  far_ahead() { input.peek(size); }
  static constexpr std::size_t size = std::size_t{1} << 22;
  file lines{many_lines()};
  reader<file> input{lines, size};
};

/// A writer with so much room that it need not write.
struct roomy {
  file target{zeros()};
  writer<file> output{target, std::size_t{1} << 24};
};

const iovec vector_of_one{single.data(), single.size()};

const switchpoint_table table = {
    {"net::tcp_stream::read",
     [](endless_loop& again) {
       again([ends = ended_stream()]() mutable { ends.client.read(single); });
     }},
    {"net::tcp_stream::read, nothing",
     [](endless_loop& again) {
       again([ends = stream_pair()]() mutable { ends.client.read(no_room); });
     }},
    {"net::tcp_stream::read, with a code",
     [](endless_loop& again) {
       again([ends = ended_stream()]() mutable {
         std::error_code error;
         ends.client.read(single, error);
         return error;
       });
     }},
    {"net::tcp_stream::write",
     [](endless_loop& again) {
       again([ends = stream_pair()]() mutable {
         ends.client.write(single);
         ends.drain();
       });
     }},
    {"net::tcp_stream::write, nothing",
     [](endless_loop& again) {
       again([ends = stream_pair()]() mutable { ends.client.write(no_bytes); });
     }},
    {"net::tcp_stream::write_all",
     [](endless_loop& again) {
       again([ends = stream_pair()]() mutable {
         ends.client.write_all(single);
         ends.drain();
       });
     }},
    {"net::tcp_stream::write_all, nothing",
     [](endless_loop& again) {
       again([ends = stream_pair()]() mutable { ends.client.write_all(""); });
     }},
    {"net::tcp_stream::write_all, nothing, with a code",
     [](endless_loop& again) {
       again([ends = stream_pair()]() mutable {
         std::error_code error;
         ends.client.write_all(no_bytes, error);
         return error;
       });
     }},
    {"net::tcp_stream::writev_all",
     [](endless_loop& again) {
       again([ends = stream_pair()]() mutable {
         ends.client.writev_all(std::span(&vector_of_one, 1));
         ends.drain();
       });
     }},
    {"net::tcp_stream::writev_all, nothing",
     [](endless_loop& again) {
       again([ends = stream_pair()]() mutable { ends.client.writev_all({}); });
     }},
    {"move_on_when_closed",
     [](endless_loop& again) {
       again([ends = stream_pair()] { move_on_when_closed(ends.client, [] { checkpoint(); }); });
     }},
    {"net::unix_stream::send_fd",
     [](endless_loop& again) {
       auto ends = make_socket_pair();
       net::unix_stream target{fd(::dup(ends.first()))};
       again([&] {
         target.send_fd(ends.first());
         ::recv(ends.second(), single.data(), 1, 0);
       });
     }},
    {"net::unix_stream::receive_fd",
     [](endless_loop& again) {
       const auto ends = ended_socket();
       net::unix_stream source{fd(::dup(ends.first()))};
       again([&] { source.receive_fd(); });
     }},
    {"pipe::read",
     [](endless_loop& again) {
       again([source = ended_pipe()]() mutable { source.ends.read(single); });
     }},
    {"pipe::read, a byte",
     [](endless_loop& again) {
       again([line = filled_pipe()]() mutable {
         line.ends.read(single);
         line.refill();
       });
     }},
    {"pipe::read, nothing",
     [](endless_loop& again) {
       again([line = filled_pipe()]() mutable { line.ends.read(no_room); });
     }},
    {"pipe::write",
     [](endless_loop& again) {
       again([line = filled_pipe()]() mutable {
         line.ends.write(single);
         line.drain();
       });
     }},
    {"pipe::write, nothing",
     [](endless_loop& again) {
       again([line = filled_pipe()]() mutable { line.ends.write(no_bytes); });
     }},
    {"pipe::write_all",
     [](endless_loop& again) {
       again([line = filled_pipe()]() mutable {
         line.ends.write_all(single);
         line.drain();
       });
     }},
    {"pipe::write_all, nothing",
     [](endless_loop& again) {
       again([line = filled_pipe()]() mutable { line.ends.write_all(""); });
     }},
    {"pipe::writev_all",
     [](endless_loop& again) {
       again([line = filled_pipe()]() mutable {
         line.ends.writev_all(std::span(&vector_of_one, 1));
         line.drain();
       });
     }},
    {"pipe::writev_all, nothing",
     [](endless_loop& again) {
       again([line = filled_pipe()]() mutable { line.ends.writev_all({}); });
     }},
    {"reader::until",
     [](endless_loop& again) {
       far_ahead lines;
       again([&] { lines.input.until("\n"); });
     }},
    {"reader::until, at the end",
     [](endless_loop& again) {
       file empty{file_of("")};
       reader input(empty);
       again([&] { input.until("\n"); });
     }},
    {"reader::line",
     [](endless_loop& again) {
       far_ahead lines;
       again([&] { lines.input.line(); });
     }},
    {"reader::exactly",
     [](endless_loop& again) {
       far_ahead lines;
       again([&] { lines.input.exactly(1); });
     }},
    {"reader::exactly, nothing",
     [](endless_loop& again) {
       far_ahead lines;
       again([&] { lines.input.exactly(0); });
     }},
    {"reader::peek",
     [](endless_loop& again) {
       far_ahead lines;
       again([&] { lines.input.peek(); });
     }},
    {"reader::peek, nothing",
     [](endless_loop& again) {
       far_ahead lines;
       again([&] { lines.input.peek(0); });
     }},
    {"reader::skip",
     [](endless_loop& again) {
       far_ahead lines;
       again([&] { lines.input.skip(1); });
     }},
    {"reader::skip, nothing",
     [](endless_loop& again) {
       far_ahead lines;
       again([&] { lines.input.skip(0); });
     }},
    {"reader::read",
     [](endless_loop& again) {
       far_ahead lines;
       again([&] { lines.input.read(single); });
     }},
    {"reader::read, nothing",
     [](endless_loop& again) {
       far_ahead lines;
       again([&] { lines.input.read(no_room); });
     }},
    {"reader::read, with a code",
     [](endless_loop& again) {
       far_ahead lines;
       again([&] {
         std::error_code error;
         lines.input.read(single, error);
         return error;
       });
     }},
    {"writer::write",
     [](endless_loop& again) {
       roomy buffer;
       again([&] { buffer.output.write("a"); });
     }},
    {"writer::write, nothing",
     [](endless_loop& again) {
       roomy buffer;
       again([&] { buffer.output.write(""); });
     }},
    {"writer::flush",
     [](endless_loop& again) {
       roomy buffer;
       again([&] { buffer.output.flush(); });
     }},
    {"copy",
     [](endless_loop& again) {
       file source{file_of("")};
       file target{zeros()};
       again([&] { copy(source, target); });
     }},
    {"copy, of a socket",
     [](endless_loop& again) {
       ended_stream source;
       stream_pair target;
       again([&] { copy(source.client, target.client); });
     }},
    {"proxy",
     [](endless_loop& again) {
       ended_stream first;
       ended_stream second;
       again([&] { proxy(first.client, second.client); });
     }},
    {"proxy, with a limit",
     [](endless_loop& again) {
       ended_stream first;
       ended_stream second;
       again([&] { proxy(first.client, second.client, 1h); });
     }},
    {"proxy, with the numbers",
     [](endless_loop& again) {
       ended_stream first;
       ended_stream second;
       proxied connection;
       again([&] { proxy(first.client, second.client, 1h, connection); });
     }},
};

}  // namespace

ENDLESS_LOOPS_END(table)
