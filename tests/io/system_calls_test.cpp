// SPDX-License-Identifier: MIT
// Each verb of motet/io/io.hpp does what the system call of that name does, on whatever descriptor.
#include "io/system_calls.hpp"

#include <sys/uio.h>
#include <sys/utsname.h>

#include <array>
#include <cstdio>
#include <vector>

#include "io/kinds_of_sockets.hpp"

namespace {

using namespace testing;
namespace io = motet::io;

std::array<std::byte, 64> room;
const std::span<const std::byte> bytes = bytes_of("abc");
std::array<iovec, 2> vectors{iovec{room.data(), 3}, iovec{room.data() + 3, 13}};

/// An empty pipe to write to, and a pipe with bytes to read from.
int way_out() {
  return pipe_end(1, 0, true);
}
int way_in() {
  return pipe_end(0, 0, true, "bytes");
}

long poll_plainly(int fd, short events) {
  pollfd look{fd, events, 0};
  const long count = told(::poll(&look, 1, -1));
  if (count < 0) return count;
  return (look.revents & POLLNVAL) != 0 ? -EBADF : look.revents;
}

const std::vector<verb> reads_and_writes = {
    {"read", [](int fd) { return told(::read(fd, room.data(), 16)); },
     [](int fd, std::error_code& error) -> long {
       return io::read(fd, std::span(room).first(16), error);
     }},
    {"read that throws", [](int fd) { return told(::read(fd, room.data(), 16)); },
     [](int fd, std::error_code&) -> long { return io::read(fd, std::span(room).first(16)); }},
    {"read of nothing", [](int fd) { return told(::read(fd, room.data(), 0)); },
     [](int fd, std::error_code& error) -> long {
       return io::read(fd, std::span(room).first(0), error);
     }},
    {"readv", [](int fd) { return told(::readv(fd, vectors.data(), 2)); },
     [](int fd, std::error_code&) -> long { return io::readv(fd, vectors); }},
    {"readv of nothing", [](int fd) { return told(::readv(fd, vectors.data(), 0)); },
     [](int fd, std::error_code&) -> long { return io::readv(fd, {}); }},
    {"write", [](int fd) { return told(::write(fd, bytes.data(), bytes.size())); },
     [](int fd, std::error_code& error) -> long { return io::write(fd, bytes, error); }},
    {"write that throws", [](int fd) { return told(::write(fd, bytes.data(), bytes.size())); },
     [](int fd, std::error_code&) -> long { return io::write(fd, bytes); }},
    {"write of nothing", [](int fd) { return told(::write(fd, bytes.data(), 0)); },
     [](int fd, std::error_code& error) -> long { return io::write(fd, {}, error); }},
    {"writev", [](int fd) { return told(::writev(fd, vectors.data(), 2)); },
     [](int fd, std::error_code&) -> long { return io::writev(fd, vectors); }},
    {"writev of nothing", [](int fd) { return told(::writev(fd, vectors.data(), 0)); },
     [](int fd, std::error_code&) -> long { return io::writev(fd, {}); }},
};

const std::vector<verb> waits = {
    {"wait_fd to read", [](int fd) { return poll_plainly(fd, POLLIN); },
     [](int fd, std::error_code&) -> long { return io::wait_fd(fd, POLLIN); }},
    {"wait_fd to write", [](int fd) { return poll_plainly(fd, POLLOUT); },
     [](int fd, std::error_code&) -> long { return io::wait_fd(fd, POLLOUT); }},
    {"wait_fd for all there is",
     [](int fd) { return poll_plainly(fd, POLLIN | POLLOUT | POLLPRI | POLLRDHUP); },
     [](int fd, std::error_code&) -> long {
       return io::wait_fd(fd, POLLIN | POLLOUT | POLLPRI | POLLRDHUP);
     }},
    {"wait_fd for what is urgent", [](int fd) { return poll_plainly(fd, POLLPRI); },
     [](int fd, std::error_code&) -> long { return io::wait_fd(fd, POLLPRI); }},
    {"wait_fd for a farewell", [](int fd) { return poll_plainly(fd, POLLRDHUP); },
     [](int fd, std::error_code&) -> long { return io::wait_fd(fd, POLLRDHUP); }},
};

const std::vector<verb> moves = {
    {"splice from it",
     [](int fd) { return told(::splice(fd, nullptr, way_out(), nullptr, 64, 0)); },
     [](int fd, std::error_code& error) -> long {
       return io::splice(fd, way_out(), 64, 0, error);
     }},
    {"splice to it", [](int fd) { return told(::splice(way_in(), nullptr, fd, nullptr, 64, 0)); },
     [](int fd, std::error_code& error) -> long { return io::splice(way_in(), fd, 64, 0, error); }},
    {"splice of nothing",
     [](int fd) { return told(::splice(fd, nullptr, way_out(), nullptr, 0, 0)); },
     [](int fd, std::error_code& error) -> long { return io::splice(fd, way_out(), 0, 0, error); }},
    {"tee from it", [](int fd) { return told(::tee(fd, way_out(), 64, 0)); },
     [](int fd, std::error_code& error) -> long { return io::tee(fd, way_out(), 64, error); }},
    {"tee to it", [](int fd) { return told(::tee(way_in(), fd, 64, 0)); },
     [](int fd, std::error_code& error) -> long { return io::tee(way_in(), fd, 64, error); }},
};

const std::vector<verb> ends = {
    {"close", [](int fd) { return told(::close(fd)); },
     [](int fd, std::error_code&) { return io::close(fd), 0L; }},
};

constexpr const char* of_nothing =
    "what a transfer of nothing finds out depends on the way it goes";
constexpr const char* polled = "a ring polls what it cannot read or write";

const std::vector<difference> of_transfers = {
    {"read of nothing", "", "EINVAL", "0", of_nothing},
    {"read of nothing", "", "EISDIR", "0", of_nothing},
    {"read of nothing", "", "EIO", "0", of_nothing},
    {"read of nothing", "", "waits", "0", of_nothing},
    {"read of nothing", "", "0", "waits", of_nothing},
    {"read of nothing", "pidfd", "EINVAL", "waits", of_nothing},
    {"read of nothing", "io_uring", "EINVAL", "waits", of_nothing},
    {"readv of nothing", "", "0", "", of_nothing},
    {"readv of nothing", "pidfd", "EINVAL", "waits", of_nothing},
    {"readv of nothing", "io_uring", "EINVAL", "waits", of_nothing},
    {"write of nothing", "", "EINVAL", "0", of_nothing},
    {"write of nothing", "", "ENOSPC", "0", of_nothing},
    {"write of nothing", "", "EIO", "0", of_nothing},
    {"write of nothing", "", "0", "waits", of_nothing},
    {"write of nothing", "pidfd", "EINVAL", "waits", of_nothing},
    {"write of nothing", "pidfd, ended", "EINVAL", "waits", of_nothing},
    {"writev of nothing", "", "0", "", of_nothing},
    {"writev of nothing", "pidfd", "EINVAL", "waits", of_nothing},
    {"writev of nothing", "pidfd, ended", "EINVAL", "waits", of_nothing},
    {"read", "pidfd", "EINVAL", "waits", polled},
    {"read that throws", "pidfd", "EINVAL", "waits", polled},
    {"readv", "pidfd", "EINVAL", "waits", polled},
    {"read", "io_uring", "EINVAL", "waits", polled},
    {"read that throws", "io_uring", "EINVAL", "waits", polled},
    {"readv", "io_uring", "EINVAL", "waits", polled},
    {"write", "pidfd", "EINVAL", "waits", polled},
    {"write that throws", "pidfd", "EINVAL", "waits", polled},
    {"writev", "pidfd", "EINVAL", "waits", polled},
    {"write", "pidfd, ended", "EINVAL", "waits", polled},
    {"write that throws", "pidfd, ended", "EINVAL", "waits", polled},
    {"writev", "pidfd, ended", "EINVAL", "waits", polled},
};

/// Returns: whether the kernel cannot read or write some kinds of descriptors in blocking mode
///          without a wait: sockets before Linux 6.5, signalfds before 6.10.
bool is_old_kernel() {
  utsname name{};
  int major = 0;
  int minor = 0;
  ::uname(&name);
  REQUIRE(std::sscanf(name.release, "%d.%d", &major, &minor) == 2);
  return major < 6 || (major == 6 && minor < 10);
}

std::vector<difference> of_transfers_here() {
  std::vector<difference> all = of_transfers;
  if (!is_old_kernel()) return all;
  for (const verb& call : reads_and_writes) {
    for (const char* error : {"EINVAL", "ENOTCONN"}) {
      all.push_back({call.name, "", error, "waits", "an old kernel is polled first"});
    }
  }
  return all;
}

const std::vector<difference> of_waits = {
    {"", "", "waits", "EBADF", "poll(2) skips a negative descriptor"},
    {"wait_fd for what is urgent", "", "waits", "EPERM", "epoll(7) refuses regular files"},
    {"wait_fd for what is urgent", "", "waits", "EINVAL", "a ring refuses regular files"},
    {"wait_fd for a farewell", "", "waits", "EPERM", "epoll(7) refuses regular files"},
    {"wait_fd for a farewell", "", "waits", "EINVAL", "a ring refuses regular files"},
};

const std::vector<difference> of_moves = {
    {"splice of nothing", "", "0", "waits", of_nothing},
    {"splice of nothing", "", "0", "EBADF", of_nothing},
};

const std::vector<difference> of_blocking_sockets = {
    {"splice from it", "", "", "EINVAL", "the kernel would have the thread wait"},
    {"splice to it", "", "", "EINVAL", "the kernel would have the thread wait"},
    {"splice of nothing", "", "", "EINVAL", "the kernel would have the thread wait"},
    {"splice of nothing", "", "0", "waits", of_nothing},
    {"splice of nothing", "", "0", "EBADF", of_nothing},
};

}  // namespace

TEST_CASE("io::read(), readv(), write() and writev() do what the system calls do") {
  check_agreement(reads_and_writes, all_kinds(), of_transfers_here());
}

TEST_CASE("io::wait_fd() does on each descriptor what poll(2) does") {
  check_agreement(waits, all_kinds(), of_waits);
}

TEST_CASE("io::splice() and tee() do on each descriptor what the system calls do") {
  check_agreement(moves, kinds_of_files, of_moves);
  check_agreement(moves, blocking_sockets(), of_blocking_sockets);
  check_agreement(moves, non_blocking_sockets(), of_moves);
}

TEST_CASE("io::close() does on each descriptor what the system call does") {
  check_agreement(ends, all_kinds());
}
