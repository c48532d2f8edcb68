// SPDX-License-Identifier: MIT
// The verbs of motet/io/io.hpp for sockets, on whatever descriptor, beside the system calls.
#include <sys/socket.h>

#include <array>

#include "io/kinds_of_sockets.hpp"
#include "io/system_calls.hpp"

namespace {

using namespace testing;
namespace io = motet::io;

std::array<std::byte, 16> room;
const std::span<const std::byte> bytes = bytes_of("abc");

/// A verb with flags; `Flags` is what differs.
template <int Flags>
verb receive(const char* name) {
  return {name, [](int fd) { return told(::recv(fd, room.data(), room.size(), Flags)); },
          [](int fd, std::error_code& error) -> long { return io::recv(fd, room, Flags, error); },
          (Flags & MSG_DONTWAIT) != 0};
}

template <int Flags>
verb send(const char* name) {
  return {name, [](int fd) { return told(::send(fd, bytes.data(), bytes.size(), Flags)); },
          [](int fd, std::error_code& error) -> long { return io::send(fd, bytes, Flags, error); },
          (Flags & MSG_DONTWAIT) != 0};
}

/// A message of 16 bytes, to receive or to send, perhaps with an address.
struct letter {
  letter() {
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
  }
  /// Names a place where no one listens.
  letter& to_loopback() {
    address = loopback_address(9);
    message.msg_name = &address;
    message.msg_namelen = sizeof address;
    return *this;
  }
  iovec vector{room.data(), room.size()};
  sockaddr_in address{};
  msghdr message{};
};

template <int Flags>
verb receive_message(const char* name) {
  return {name,
          [](int fd) {
            letter gets;
            return told(::recvmsg(fd, &gets.message, Flags));
          },
          [](int fd, std::error_code& error) -> long {
            letter gets;
            return io::recvmsg(fd, gets.message, Flags, error);
          },
          (Flags & MSG_DONTWAIT) != 0};
}

const std::vector<verb> receive_verbs = {
    receive<0>("recv"),
    receive<MSG_PEEK>("recv, MSG_PEEK"),
    receive<MSG_TRUNC>("recv, MSG_TRUNC"),
    receive<MSG_OOB>("recv, MSG_OOB"),
    receive<MSG_ERRQUEUE>("recv, MSG_ERRQUEUE"),
    receive<MSG_DONTWAIT>("recv, MSG_DONTWAIT"),
    {"recv that throws", [](int fd) { return told(::recv(fd, room.data(), room.size(), 0)); },
     [](int fd, std::error_code&) -> long { return io::recv(fd, room); }},
    {"recv of nothing", [](int fd) { return told(::recv(fd, room.data(), 0, 0)); },
     [](int fd, std::error_code& error) -> long { return io::recv(fd, {}, 0, error); }},
    receive_message<0>("recvmsg"),
    receive_message<MSG_DONTWAIT>("recvmsg, MSG_DONTWAIT"),
};

const std::vector<verb> send_verbs = {
    send<0>("send"),
    send<MSG_OOB>("send, MSG_OOB"),
    send<MSG_MORE>("send, MSG_MORE"),
    send<MSG_EOR>("send, MSG_EOR"),
    send<MSG_DONTWAIT>("send, MSG_DONTWAIT"),
    {"send that throws", [](int fd) { return told(::send(fd, bytes.data(), bytes.size(), 0)); },
     [](int fd, std::error_code&) -> long { return io::send(fd, bytes); }},
    {"send of nothing", [](int fd) { return told(::send(fd, bytes.data(), 0, 0)); },
     [](int fd, std::error_code& error) -> long { return io::send(fd, {}, 0, error); }},
    {"sendmsg",
     [](int fd) {
       const letter note;
       return told(::sendmsg(fd, &note.message, 0));
     },
     [](int fd, std::error_code& error) -> long {
       return io::sendmsg(fd, letter().message, 0, error);
     }},
    {"sendmsg to an address",
     [](int fd) { return told(::sendmsg(fd, &letter().to_loopback().message, 0)); },
     [](int fd, std::error_code& error) -> long {
       return io::sendmsg(fd, letter().to_loopback().message, 0, error);
     }},
};

/// Returns: 1 for a new descriptor with the close-on-exec flag, 3 for one in non-blocking mode.
long shape_of(long accepted) {
  if (accepted < 0) return accepted;
  const int fd = static_cast<int>(accepted);
  return ((::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0 ? 1 : 0) +
         ((::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0 ? 2 : 0);
}

/// Where a socket like `fd` can connect to: somebody listens there, and never stops.
struct place {
  explicit place(int fd) {
    int domain = AF_INET;
    int type = SOCK_STREAM;
    socklen_t length = sizeof domain;
    ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length);
    ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length);
    const int listener = ::socket(domain == AF_UNIX ? AF_UNIX : AF_INET, type, 0);
    (domain == AF_UNIX ? bound_to_a_name : bound_to_loopback)(listener);
    ::listen(listener, 8);
    size = sizeof address;
    ::getsockname(listener, get(), &size);
  }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&address); }
  sockaddr_storage address{};
  socklen_t size = 0;
};

/// A connect of a non-blocking socket is over when poll(2) says so.
long connect_plainly(int fd, const sockaddr* address, socklen_t size) {
  const long result = told(::connect(fd, address, size));
  if (result != -EINPROGRESS) return result;
  pollfd look{fd, POLLOUT, 0};
  if (::poll(&look, 1, -1) < 0) return -errno;
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
  return -error;
}

long connect_by_motet(int fd, const sockaddr* address, socklen_t size, std::error_code& error) {
  io::connect(fd, address, size, error);
  return 0;
}

const sockaddr_in nowhere = loopback_address(9);
const auto* const refusing = reinterpret_cast<const sockaddr*>(&nowhere);
const sockaddr no_family{AF_UNSPEC, {}};

const std::vector<verb> connect_verbs = {
    {"accept", [](int fd) { return shape_of(told(::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC))); },
     [](int fd, std::error_code& error) {
       return shape_of(io::accept(fd, nullptr, nullptr, error));
     }},
    {"accept that tells the address",
     [](int fd) -> long {
       sockaddr_storage peer{};
       socklen_t size = sizeof peer;
       const long fd_made = told(::accept(fd, reinterpret_cast<sockaddr*>(&peer), &size));
       return fd_made < 0 ? fd_made : size;
     },
     [](int fd, std::error_code& error) -> long {
       sockaddr_storage peer{};
       socklen_t size = sizeof peer;
       io::accept(fd, reinterpret_cast<sockaddr*>(&peer), &size, error);
       return size;
     }},
    {"connect",
     [](int fd) {
       place target(fd);
       return connect_plainly(fd, target.get(), target.size);
     },
     [](int fd, std::error_code& error) {
       place target(fd);
       return connect_by_motet(fd, target.get(), target.size, error);
     }},
    {"connect to where nobody listens",
     [](int fd) { return connect_plainly(fd, refusing, sizeof nowhere); },
     [](int fd, std::error_code& error) {
       return connect_by_motet(fd, refusing, sizeof nowhere, error);
     }},
    {"connect to no address", [](int fd) { return connect_plainly(fd, refusing, 0); },
     [](int fd, std::error_code& error) { return connect_by_motet(fd, refusing, 0, error); }},
    {"connect to AF_UNSPEC",
     [](int fd) { return connect_plainly(fd, &no_family, sizeof no_family); },
     [](int fd, std::error_code& error) {
       return connect_by_motet(fd, &no_family, sizeof no_family, error);
     }},
    {"shutdown to write", [](int fd) { return told(::shutdown(fd, SHUT_WR)); },
     [](int fd, std::error_code&) { return io::shutdown(fd, SHUT_WR), 0L; }},
    {"shutdown", [](int fd) { return told(::shutdown(fd, SHUT_RDWR)); },
     [](int fd, std::error_code&) { return io::shutdown(fd, SHUT_RDWR), 0L; }},
    {"shutdown of no direction", [](int fd) { return told(::shutdown(fd, 7)); },
     [](int fd, std::error_code&) { return io::shutdown(fd, 7), 0L; }},
};

const std::vector<verb> refused = {
    receive<MSG_WAITALL>("recv, MSG_WAITALL"),
    receive_message<MSG_WAITALL>("recvmsg, MSG_WAITALL"),
};

const std::vector<difference> of_receiving = {
    {"recv, MSG_ERRQUEUE", "", "waits", "EAGAIN", "the queue of errors is never waited for"},
    {"recvmsg, MSG_ERRQUEUE", "", "waits", "EAGAIN", "the queue of errors is never waited for"},
    {"recv of nothing", "", "0", "waits", "a ring looks for bytes first"},
};

const std::vector<difference> documented = {
    {"", "", "", "EINVAL", "an interruption would lose what has come"},
};

}  // namespace

TEST_CASE("io::recv() and recvmsg() do on each descriptor what the system calls do") {
  check_agreement(receive_verbs, all_kinds(), of_receiving);
}

TEST_CASE("io::send() and sendmsg() do on each descriptor what the system calls do") {
  check_agreement(send_verbs, all_kinds());
}

TEST_CASE("io::accept(), connect() and shutdown() do what the system calls do") {
  check_agreement(connect_verbs, all_kinds());
}

TEST_CASE("io::recv() and recvmsg() reject MSG_WAITALL on each descriptor") {
  check_agreement(refused, all_kinds(), documented);
}
