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
    here = tcp_stream(fd(ends[0]));
    there = tcp_stream(fd(ends[1]));
  }
  /// Takes what has come, without a word to motet.
  void drain() const { ::recv(there.native_handle(), room, sizeof room, MSG_DONTWAIT); }

  tcp_stream here;
  tcp_stream there;
  mutable char room[64];
};

/// A stream whose peer will send no more.
struct ended_stream : stream_pair {
  ended_stream() { there.shutdown(SHUT_WR); }
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
  far_ahead() { in.peek(size); }
  static constexpr std::size_t size = std::size_t{1} << 22;
  file lines{many_lines()};
  reader<file> in{lines, size};
};

/// A writer with so much room that it need not write.
struct roomy {
  file to{zeros()};
  writer<file> out{to, std::size_t{1} << 24};
};

const iovec vector_of_one{single.data(), single.size()};

const switchpoint_table table = {
    {"net::tcp_stream::read",
     [](endless_loop& again) {
       again([ends = ended_stream()]() mutable { ends.here.read(single); });
     }},
    {"net::tcp_stream::read, nothing",
     [](endless_loop& again) {
       again([ends = stream_pair()]() mutable { ends.here.read(no_room); });
     }},
    {"net::tcp_stream::read, with a code",
     [](endless_loop& again) {
       again([ends = ended_stream()]() mutable {
         std::error_code error;
         ends.here.read(single, error);
         return error;
       });
     }},
    {"net::tcp_stream::write",
     [](endless_loop& again) {
       again([ends = stream_pair()]() mutable {
         ends.here.write(single);
         ends.drain();
       });
     }},
    {"net::tcp_stream::write, nothing",
     [](endless_loop& again) {
       again([ends = stream_pair()]() mutable { ends.here.write(no_bytes); });
     }},
    {"net::tcp_stream::write_all",
     [](endless_loop& again) {
       again([ends = stream_pair()]() mutable {
         ends.here.write_all(single);
         ends.drain();
       });
     }},
    {"net::tcp_stream::write_all, nothing",
     [](endless_loop& again) {
       again([ends = stream_pair()]() mutable { ends.here.write_all(""); });
     }},
    {"net::tcp_stream::write_all, nothing, with a code",
     [](endless_loop& again) {
       again([ends = stream_pair()]() mutable {
         std::error_code error;
         ends.here.write_all(no_bytes, error);
         return error;
       });
     }},
    {"net::tcp_stream::writev_all",
     [](endless_loop& again) {
       again([ends = stream_pair()]() mutable {
         ends.here.writev_all(std::span(&vector_of_one, 1));
         ends.drain();
       });
     }},
    {"net::tcp_stream::writev_all, nothing",
     [](endless_loop& again) {
       again([ends = stream_pair()]() mutable { ends.here.writev_all({}); });
     }},
    {"move_on_when_closed",
     [](endless_loop& again) {
       again([ends = stream_pair()] { move_on_when_closed(ends.here, [] { checkpoint(); }); });
     }},
    {"net::unix_stream::send_fd",
     [](endless_loop& again) {
       auto ends = make_socket_pair();
       net::unix_stream to{fd(::dup(ends.first()))};
       again([&] {
         to.send_fd(ends.first());
         ::recv(ends.second(), single.data(), 1, 0);
       });
     }},
    {"net::unix_stream::receive_fd",
     [](endless_loop& again) {
       const auto ends = ended_socket();
       net::unix_stream from{fd(::dup(ends.first()))};
       again([&] { from.receive_fd(); });
     }},
    {"pipe::read",
     [](endless_loop& again) {
       again([from = ended_pipe()]() mutable { from.ends.read(single); });
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
       again([&] { lines.in.until("\n"); });
     }},
    {"reader::until, at the end",
     [](endless_loop& again) {
       file nothing{file_of("")};
       reader in(nothing);
       again([&] { in.until("\n"); });
     }},
    {"reader::line",
     [](endless_loop& again) {
       far_ahead lines;
       again([&] { lines.in.line(); });
     }},
    {"reader::exactly",
     [](endless_loop& again) {
       far_ahead lines;
       again([&] { lines.in.exactly(1); });
     }},
    {"reader::exactly, nothing",
     [](endless_loop& again) {
       far_ahead lines;
       again([&] { lines.in.exactly(0); });
     }},
    {"reader::peek",
     [](endless_loop& again) {
       far_ahead lines;
       again([&] { lines.in.peek(); });
     }},
    {"reader::peek, nothing",
     [](endless_loop& again) {
       far_ahead lines;
       again([&] { lines.in.peek(0); });
     }},
    {"reader::skip",
     [](endless_loop& again) {
       far_ahead lines;
       again([&] { lines.in.skip(1); });
     }},
    {"reader::skip, nothing",
     [](endless_loop& again) {
       far_ahead lines;
       again([&] { lines.in.skip(0); });
     }},
    {"reader::read",
     [](endless_loop& again) {
       far_ahead lines;
       again([&] { lines.in.read(single); });
     }},
    {"reader::read, nothing",
     [](endless_loop& again) {
       far_ahead lines;
       again([&] { lines.in.read(no_room); });
     }},
    {"reader::read, with a code",
     [](endless_loop& again) {
       far_ahead lines;
       again([&] {
         std::error_code error;
         lines.in.read(single, error);
         return error;
       });
     }},
    {"writer::write",
     [](endless_loop& again) {
       roomy kept;
       again([&] { kept.out.write("a"); });
     }},
    {"writer::write, nothing",
     [](endless_loop& again) {
       roomy kept;
       again([&] { kept.out.write(""); });
     }},
    {"writer::flush",
     [](endless_loop& again) {
       roomy kept;
       again([&] { kept.out.flush(); });
     }},
    {"copy",
     [](endless_loop& again) {
       file from{file_of("")};
       file to{zeros()};
       again([&] { copy(from, to); });
     }},
    {"copy, of a socket",
     [](endless_loop& again) {
       ended_stream from;
       stream_pair to;
       again([&] { copy(from.here, to.here); });
     }},
    {"proxy",
     [](endless_loop& again) {
       ended_stream first;
       ended_stream second;
       again([&] { proxy(first.here, second.here); });
     }},
    {"proxy, with a limit",
     [](endless_loop& again) {
       ended_stream first;
       ended_stream second;
       again([&] { proxy(first.here, second.here, 1h); });
     }},
    {"proxy, with the numbers",
     [](endless_loop& again) {
       ended_stream first;
       ended_stream second;
       proxied moved;
       again([&] { proxy(first.here, second.here, 1h, moved); });
     }},
};

}  // namespace

ENDLESS_LOOPS_END(table)
