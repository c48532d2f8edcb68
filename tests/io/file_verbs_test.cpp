// SPDX-License-Identifier: MIT
// Reading and writing at an offset, bringing a file to the disk, and messages with more than bytes.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <motet/motet.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "io/descriptors.hpp"
#include "io/streams.hpp"
#include "sockets.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::bad_descriptor;
using testing::bytes_of;
using testing::descriptor_letter;
using testing::make_pipe;
using testing::make_socket_pair;
using testing::oops;
using testing::until_waiting;

namespace {

static_assert(noexcept(io::pread(0, {}, 0, std::declval<std::error_code&>())));
static_assert(noexcept(io::pwrite(0, {}, 0, std::declval<std::error_code&>())));
static_assert(noexcept(io::fsync(0, std::declval<std::error_code&>())));
static_assert(noexcept(io::recvmsg(0, std::declval<msghdr&>(), 0,
                                   std::declval<std::error_code&>())));

/// An empty file without a name.
fd empty_file(int flags = 0) {
  std::string name = std::filesystem::temp_directory_path() / "motet-verbs-XXXXXX";
  fd file(::mkostemp(name.data(), O_CLOEXEC | flags));
  REQUIRE(file);
  ::unlink(name.c_str());
  return file;
}

std::string read_at(int file, std::size_t size, off_t offset) {
  std::string text(size, '\0');
  text.resize(io::pread(file, std::as_writable_bytes(std::span(text)), offset));
  return text;
}

template <typename F>
int errno_of(F f) {
  try {
    f();
  } catch (const std::system_error& error) {
    return error.code().value();
  }
  return 0;
}

/// What recvmsg() is to fill.
struct envelope {
  envelope() {
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
  }
  /// The descriptor that came with it, or an empty one.
  fd descriptor() {
    const cmsghdr* first = CMSG_FIRSTHDR(&message);
    if (first == nullptr || first->cmsg_type != SCM_RIGHTS) return fd();
    int number = -1;
    std::memcpy(&number, CMSG_DATA(first), sizeof number);
    return fd(number);
  }

  std::array<char, 16> bytes{};
  iovec vector{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
};

}  // namespace

TEST_CASE("io::pwrite() and pread() work at an offset, and leave the position", "[io][file]") {
  run([] {
    const fd file = empty_file();
    CHECK(io::pwrite(file.get(), bytes_of("world"), 6) == 5);
    CHECK(io::pwrite(file.get(), bytes_of("hello "), 0) == 6);
    CHECK(::lseek(file.get(), 0, SEEK_CUR) == 0);
    CHECK(read_at(file.get(), 100, 0) == "hello world");
    CHECK(read_at(file.get(), 3, 8) == "rld");
    CHECK(read_at(file.get(), 10, 11).empty());
    CHECK(::lseek(file.get(), 0, SEEK_CUR) == 0);
    io::fsync(file.get());
  });
}

TEST_CASE("io::pwrite() and pread() serve many fibers at their own offsets", "[io][file]") {
  run([] {
    const fd file = empty_file();
    constexpr int fibers = 50;
    {
      group workers;
      for (int i = 0; i < fibers; ++i) {
        workers.spin([&file, i] {
          const std::string text(100, static_cast<char>('a' + i % 26));
          io::pwrite(file.get(), bytes_of(text), i * 100);
          if (i % 10 == 0) io::fsync(file.get());
          CHECK(read_at(file.get(), 100, i * 100) == text);
        });
      }
      workers.await_all();
    }
    CHECK(::lseek(file.get(), 0, SEEK_END) == fibers * 100);
  });
}

TEST_CASE("io::pread() reads a file that is not in the kernel's cache", "[io][file]") {
  run([] {
    const fd file = empty_file();
    const std::string text(1 << 16, 'x');
    io::pwrite(file.get(), bytes_of(text), 0);
    io::fsync(file.get());
    ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
    CHECK(read_at(file.get(), text.size(), 0) == text);
  });
}

TEST_CASE("io::pread() and pwrite() throw where there is no offset", "[io][file]") {
  run([] {
    const auto pipe = make_pipe();
    const auto sockets = make_socket_pair();
    const fd file = empty_file();
    std::array<std::byte, 4> buffer{};
    CHECK(errno_of([&] { io::pread(pipe.first(), buffer, 0); }) == ESPIPE);
    CHECK(errno_of([&] { io::pwrite(pipe.second(), buffer, 0); }) == ESPIPE);
    CHECK(errno_of([&] { io::pread(sockets.first(), buffer, 0); }) == ESPIPE);
    CHECK(errno_of([&] { io::pread(file.get(), buffer, -1); }) == EINVAL);
    CHECK(errno_of([&] { io::pwrite(file.get(), buffer, -1); }) == EINVAL);
    CHECK(errno_of([&] { io::fsync(pipe.first()); }) == EINVAL);
    std::error_code error;
    CHECK(io::pread(file.get(), buffer, -1, error) == 0);
    CHECK(error == std::errc::invalid_argument);
    CHECK(io::pwrite(pipe.second(), buffer, 0, error) == 0);
    CHECK(error == std::errc::invalid_seek);
    io::fsync(pipe.first(), error);
    CHECK(error == std::errc::invalid_argument);
    CHECK(io::pread(-1, buffer, 0, error) == 0);
    CHECK(error == std::errc::bad_file_descriptor);
    int old_number = -1;
    {
      const fd old_file = empty_file();
      old_number = old_file.get();
    }
    CHECK(errno_of([&] { io::fsync(old_number); }) == EBADF);
    CHECK(errno_of([&] { io::pread(old_number, buffer, 0); }) == EBADF);
  });
}

TEST_CASE("io::pread() and pwrite() work with O_DIRECT", "[io][file]") {
  run([] {
    const fd file = empty_file();
    constexpr std::size_t block = 4096;
    if (::fcntl(file.get(), F_SETFL, O_DIRECT) != 0) return;  // this file system has no such thing
    alignas(block) static std::array<std::byte, block> pattern;
    alignas(block) static std::array<std::byte, block> bytes;
    pattern.fill(std::byte{7});
    CHECK(io::pwrite(file.get(), pattern, block) == block);
    CHECK(io::pread(file.get(), bytes, block) == block);
    CHECK(bytes == pattern);
  });
}

TEST_CASE("io::write_all() and read_exactly() pass a buffer through a smaller pipe", "[io]") {
  run([] {
    auto pipe = make_pipe();
    std::string text(1 << 20, 'a');
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 26);
    auto writer = spin([&] { io::write_all(pipe.second(), bytes_of(text)); });
    std::vector<std::byte> bytes(text.size());
    io::read_exactly(pipe.first(), bytes);
    CHECK(testing::text_of(bytes) == text);
    writer.await();
    io::write_all(pipe.second(), bytes_of("abc"));
    pipe.close_second();
    std::error_code error;
    CHECK(io::read_exactly(pipe.first(), std::span(bytes).first(2), error) == 2);
    CHECK_THROWS_AS(io::read_exactly(pipe.first(), std::span(bytes).first(2)), unexpected_eof);
    CHECK(io::read_exactly(pipe.first(), bytes, error) == 0);
    CHECK_FALSE(error);
  });
}

TEST_CASE("io::write_all() and read_exactly() say how far they got when interrupted", "[io]") {
  run([] {
    const auto pipe = make_pipe();
    const std::vector<std::byte> large(1 << 20);
    std::error_code error;
    std::size_t count = 0;
    auto writer = spin([&] {
      count = io::write_all(pipe.second(), large, error);
      snooze();
    });
    until_waiting(writer);
    CHECK(writer.raise(oops()));
    CHECK_THROWS_AS(writer.await(), oops);
    CHECK(error == std::errc::operation_canceled);
    CHECK(count == testing::take_all(pipe.first()).size());
    CHECK(count > 0);
    std::size_t read_count = 0;
    std::array<std::byte, 10> buffer{};
    auto reader = spin([&] {
      read_count = io::read_exactly(pipe.first(), buffer, error);
      snooze();
    });
    until_waiting(reader);
    io::write_all(pipe.second(), bytes_of("abc"));
    until_waiting(reader);
    CHECK(reader.raise(oops()));
    CHECK_THROWS_AS(reader.await(), oops);
    CHECK(error == std::errc::operation_canceled);
    CHECK(read_count + testing::take_all(pipe.first()).size() == 3);
  });
}

TEST_CASE("io::write_all() does not go on in another file that has got the number", "[io]") {
  run([] {
    const std::vector<std::byte> large(1 << 19, std::byte{'x'});
    for (int round = 0; round < 60; ++round) {
      int ends[2];
      REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
      const fd exit(ends[0]);
      std::error_code error;
      const int number = ends[1];
      auto writer = spin([&] { io::write_all(number, large, error); });
      until_waiting(writer);
      testing::take_all(exit.get());
      for (int turns = 0; turns < round % 6; ++turns) snooze();
      io::close(number);
      const fd victim = empty_file();
      CHECK(victim.get() == number);
      writer.await();
      CHECK(error == std::errc::bad_file_descriptor);
      CHECK(::lseek(victim.get(), 0, SEEK_END) == 0);
    }
  });
}

TEST_CASE("io::recvmsg() receives a descriptor with the close-on-exec flag", "[io][recvmsg]") {
  run([] {
    const auto sockets = make_socket_pair();
    const auto pipe = make_pipe();
    envelope note;
    auto receiver = spin([&] { return io::recvmsg(sockets.first(), note.message); });
    until_waiting(receiver);
    const descriptor_letter letter(pipe.second());
    REQUIRE(::sendmsg(sockets.second(), &letter.message, 0) == 1);
    CHECK(receiver.await() == 1);
    CHECK(note.bytes[0] == 'd');
    const fd copy = note.descriptor();
    REQUIRE(copy);
    CHECK((::fcntl(copy.get(), F_GETFD) & FD_CLOEXEC) != 0);
    io::write(copy.get(), bytes_of("!"));
    CHECK(testing::read_text(pipe.first()) == "!");
  });
}

TEST_CASE("io::recvmsg() can be interrupted while it waits, and loses nothing", "[io][recvmsg]") {
  run([] {
    const auto sockets = make_socket_pair();
    envelope note;
    auto receiver = spin([&] { return io::recvmsg(sockets.first(), note.message); });
    until_waiting(receiver);
    CHECK(receiver.raise(oops()));
    CHECK_THROWS_AS(receiver.await(), oops);
    REQUIRE(::send(sockets.second(), "abc", 3, 0) == 3);
    envelope later;
    CHECK(io::recvmsg(sockets.first(), later.message) == 3);
    CHECK(std::string(later.bytes.data(), 3) == "abc");
  });
}

TEST_CASE("io::recvmsg() returns 0 at the end, and throws for errors and MSG_WAITALL",
          "[io][recvmsg]") {
  run([] {
    auto sockets = make_socket_pair();
    const auto pipe = make_pipe();
    envelope note;
    std::error_code error;
    CHECK(io::recvmsg(sockets.first(), note.message, MSG_DONTWAIT, error) == 0);
    CHECK(error == std::errc::resource_unavailable_try_again);
    CHECK_THROWS_AS(io::recvmsg(sockets.first(), note.message, MSG_WAITALL), std::invalid_argument);
    CHECK(io::recvmsg(sockets.first(), note.message, MSG_WAITALL, error) == 0);
    CHECK(error == std::errc::invalid_argument);
    CHECK(errno_of([&] { io::recvmsg(pipe.first(), note.message); }) == ENOTSOCK);
    ::shutdown(sockets.second(), SHUT_WR);
    CHECK(io::recvmsg(sockets.first(), note.message) == 0);
  });
}

TEST_CASE("io::recvmsg() returns the sender of a datagram", "[io][recvmsg]") {
  run([] {
    const fd server(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const fd client(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = testing::loopback_address(0);
    socklen_t size = sizeof address;
    REQUIRE(::bind(server.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(::getsockname(server.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
    envelope note;
    sockaddr_in sender{};
    note.message.msg_name = &sender;
    note.message.msg_namelen = sizeof sender;
    auto receiver = spin([&] { return io::recvmsg(server.get(), note.message); });
    until_waiting(receiver);
    REQUIRE(::sendto(client.get(), "hi", 2, 0, reinterpret_cast<sockaddr*>(&address), size) == 2);
    CHECK(receiver.await() == 2);
    CHECK(note.message.msg_namelen == sizeof sender);
    sockaddr_in client_address{};
    REQUIRE(::getsockname(client.get(), reinterpret_cast<sockaddr*>(&client_address), &size) == 0);
    CHECK(sender.sin_port == client_address.sin_port);
  });
}
