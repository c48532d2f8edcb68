// SPDX-License-Identifier: MIT
// Says what every kind of call returns, throws and leaves behind, a line each: trace_test.py
// compares what it says on each backend.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <motet/motet.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

using namespace motet;
using namespace std::chrono_literals;
using net::endpoint;

namespace {

std::string place;  // a directory that is empty at first

std::string text_of(std::size_t number) {
  return std::to_string(number);
}
std::string text_of(const std::optional<std::string_view>& text) {
  return text ? '"' + std::string(*text) + '"' : "nothing";
}
std::string text_of(std::span<const std::byte> bytes) {
  return '"' + std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()) + '"';
}

/// Calls `f`, and says what came of it. No address, number of a descriptor or time is said.
template <typename F>
void say(const char* label, F f) {
  std::string outcome = "done";
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
      f();
    } else {
      outcome = text_of(f());
    }
  } catch (const timed_out&) {
    outcome = "timed_out";
  } catch (const std::system_error& error) {
    outcome = error.code().message();
  } catch (const limit_exceeded& error) {
    outcome = std::string("limit_exceeded: ") + error.what();
  } catch (const unexpected_eof& error) {
    outcome = std::string("unexpected_eof: ") + error.what();
  } catch (const std::invalid_argument& error) {
    outcome = std::string("invalid_argument: ") + error.what();
  } catch (const fiber_cancelled&) {
    outcome = "fiber_cancelled";
  }
  std::printf("%s: %s\n", label, outcome.c_str());
}

std::array<std::byte, 64> room;

template <typename Stream>
void say_stream(const char* kind, Stream& stream, Stream& peer) {
  std::printf("-- %s\n", kind);
  say("nothing to read, in time", [&] { with_timeout(1ms, [&] { stream.read(room); }); });
  say("write", [&] { peer.write_all(std::string_view("one\r\ntwo")); });
  reader input(stream, 5);
  say("line", [&] { return input.line(); });
  say("peek", [&] { return input.peek(2); });
  say("too much of it", [&] { return input.exactly(6); });
  auto waiter = spin([&] { return text_of(input.until("\n")); });
  snooze();
  say("a reader is cancelled", [&] {
    waiter.cancel();
    waiter.await();
  });
  peer.write_all(std::string_view("and\nmore than five\nend"));
  say("until", [&] { return input.until("\n", 20); });
  say("a line beyond the limit", [&] { return input.line(); });
  say("skip it", [&] { input.skip(15); });
  peer.shutdown(SHUT_WR);
  say("until the end", [&] { return input.until("\n"); });
  say("the last line", [&] { return input.line(); });
  say("after it", [&] { return input.line(); });
  peer.close();
  snooze();
  say("write to nobody", [&] {
    for (int i = 0; i < 100; ++i) {
      stream.write_all(std::string_view("text"));
      sleep_for(1ms);
    }
  });
  auto victim = spin([&] { stream.read(room); });
  stream.close();
  say("closed meanwhile", [&] { victim.await(); });
  say("closed before", [&] { stream.read(room); });
}

void say_streams() {
  auto pair = net::stream_pair();
  say_stream("unix_stream", pair.first, pair.second);
  net::tcp_listener listener(endpoint::loopback(0));
  const endpoint address = listener.local_endpoint();
  auto client = net::tcp_stream::connect(address);
  auto server = listener.accept();
  say_stream("tcp_stream", server, client);
  say("accept in time", [&] { with_timeout(1ms, [&] { listener.accept(); }); });
  auto acceptor = spin([&] { listener.accept(); });
  snooze();
  listener.close();
  say("a listener is closed", [&] { acceptor.await(); });
  say("nobody listens", [&] { net::tcp_stream::connect(address); });
}

void say_pipe() {
  std::printf("-- pipe\n");
  motet::pipe way = motet::pipe::open();
  say("nothing to read, in time", [&] { with_timeout(1ms, [&] { way.read(room); }); });
  const std::string much(100'000, 'm');
  std::error_code error;
  say("more than it holds, in time", [&] {
    move_on_after(5ms, [&] { way.write_all(std::as_bytes(std::span(much)), error); });
    return error.message();
  });
  way.shutdown(SHUT_WR);
  std::size_t total = 0;
  while (const std::size_t size = way.read(room)) total += size;
  say("what it held", [&] { return total; });
  way.shutdown(SHUT_RD);
  say("closed", [&] { way.read(room); });
}

void say_files() {
  std::printf("-- file\n");
  const std::string path = place + "/file";
  say("missing", [&] { file::open(path); });
  file_watch changes(place, IN_CREATE | IN_DELETE);
  file source = file::open(path, O_RDWR | O_CREAT | O_EXCL);
  say("there", [&] { file::open(path, O_CREAT | O_EXCL); });
  say("a path with a NUL", [&] { file::open(std::string_view("a\0b", 3)); });
  source.write_all("some text");
  say("at the end", [&] { return source.read(room); });
  say("read_at", [&] { return std::span<const std::byte>(room).first(source.read_at(room, 5)); });
  say("exactly", [&] {
    source.seek(0);
    source.read_exactly(std::span(room).first(20));
  });
  say("append", [&] { source.append("!"); });
  say("size", [&] { return static_cast<std::size_t>(source.size()); });
  say("statx", [&] {
    struct statx status{};
    io::statx(AT_FDCWD, path.c_str(), 0, STATX_SIZE, status);
    return static_cast<std::size_t>(status.stx_size);
  });
  say("full", [&] { file::open("/dev/full", O_WRONLY).write_all("x"); });
  say("rename",
      [&] { io::renameat(AT_FDCWD, path.c_str(), AT_FDCWD, (place + "/other").c_str()); });
  say("mkdirat", [&] { io::mkdirat(AT_FDCWD, (place + "/inner").c_str(), 0700); });
  say("unlinkat of a directory", [&] { io::unlinkat(AT_FDCWD, (place + "/inner").c_str(), 0); });
  say("its names", [&] {
    std::size_t names = 0;
    for ([[maybe_unused]] const directory_entry& each : directory(place)) ++names;
    return names;
  });
  say("a change", [&] { return changes.next()->path.substr(place.size()); });
  file target = file::open(place + "/copy", O_RDWR | O_CREAT);
  source.seek(0);
  say("copy", [&] { return static_cast<std::size_t>(copy(source, target)); });
  source.close();
  say("closed", [&] { source.read(room); });
}

void say_datagrams() {
  std::printf("-- udp_socket\n");
  net::udp_socket stream(endpoint::loopback(0));
  net::udp_socket peer(endpoint::loopback(0));
  const auto address = stream.local_endpoint();
  say("nothing in time", [&] { with_timeout(1ms, [&] { stream.receive_from(room); }); });
  peer.send_to({}, address);
  say("an empty one", [&] { return stream.receive_from(room).size; });
  const std::string big(100, 'b');
  peer.send_to(std::as_bytes(std::span(big)), address);
  say("a longer one", [&] {
    const net::received_datagram datagram = stream.receive_from(room);
    return text_of(datagram.size) + (datagram.truncated ? " truncated" : " whole") +
           (datagram.from == peer.local_endpoint() ? "" : ", of a stranger");
  });
  const std::string too_big(70'000, 'b');
  say("too long a one", [&] { peer.send_to(std::as_bytes(std::span(too_big)), address); });
  stream.close();
  say("closed", [&] { stream.receive_from(room); });
}

void say_descriptors() {
  std::printf("-- descriptors\n");
  auto pair = net::stream_pair();
  say("data for a descriptor", [&] {
    pair.first.write_all("x");
    return static_cast<std::size_t>(pair.second.receive_fd().has_value());
  });
  const fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  say("send_fd", [&] { pair.first.send_fd(null.get()); });
  say("receive_fd", [&] { return static_cast<std::size_t>(pair.second.receive_fd().has_value()); });
  say("read of no descriptor", [&] { io::read(-1, room); });
  say("wait_fd for nothing", [&] { io::wait_fd(null.get(), 0); });
  say("wait_fd", [&] {
    return static_cast<std::size_t>(io::wait_fd(pair.first.native_handle(), POLLOUT | POLLIN));
  });
  pair.second.close();
  say("wait_fd for a hang-up", [&] {
    const short events = POLLIN | POLLRDHUP;
    return static_cast<std::size_t>(io::wait_fd(pair.first.native_handle(), events));
  });
}

void say_programs() {
  std::printf("-- programs\n");
  const auto shell = [](const char* script) {
    return run_command({.program = "/bin/sh", .args = {"-c", script}});
  };
  say("a missing one", [&] { process::start({.program = "/missing/program"}); });
  say("what it writes", [&] { return shell("echo text; exit 3").out; });
  say("its code", [&] { return static_cast<std::size_t>(shell("exit 3").status.code); });
  say("its signal", [&] { return static_cast<std::size_t>(shell("kill -9 $$").status.signal); });
  say("one that is told to end", [&] {
    process idle = process::start({.program = "sleep", .args = {"1000"}});
    return static_cast<std::size_t>(idle.terminate().code);
  });
  signal_set signals{SIGUSR1, SIGUSR2};
  ::kill(::getpid(), SIGUSR2);
  say("a signal", [&] { return static_cast<std::size_t>(signals.next() == SIGUSR2); });
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  place = arguments[1];
  run([] {
    say_streams();
    say_pipe();
    say_files();
    say_datagrams();
    say_descriptors();
    say_programs();
  });
}
