// SPDX-License-Identifier: MIT
// read(2), write(2), recv(2) and send(2) in a fiber have the results that they have on a thread,
// whatever the kind and the mode of the descriptor, and leave its mode alone.
#include <netinet/in.h>
#include <pty.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>

#include "posix/journal.hpp"
#include "posix/pair.hpp"

namespace {

using namespace testing;
using namespace std::chrono_literals;

const std::array kinds{"stream", "tcp", "datagram", "seqpacket", "pipe", "terminal"};
const std::array socket_kinds{"stream", "tcp", "datagram", "seqpacket"};

/// Values that the compiler must not know, because it would warn of them.
void* bad_address() {
  static void* volatile address = reinterpret_cast<void*>(8);
  return address;
}

int count_of(int count) {
  const volatile int unknown = count;
  return unknown;
}

bool is_socket(const std::string& kind) {
  return kind != "pipe" && kind != "terminal";
}

void put(int fd, std::string_view text) {
  REQUIRE(::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

void limit(int fd, int option, std::chrono::microseconds span) {
  const timeval time{0, span.count()};
  REQUIRE(::setsockopt(fd, SOL_SOCKET, option, &time, sizeof time) == 0);
}

void read_and_note(journal& log, int fd, std::size_t size) {
  std::array<char, 64> buffer{};
  const ssize_t count = log.call("read", ::read(fd, buffer.data(), size));
  if (count > 0) log.text("data", {buffer.data(), static_cast<std::size_t>(count)});
}

}  // namespace

TEST_CASE("read() in a fiber returns data that is there, and the end") {
  for (const std::string kind : kinds) {
    CAPTURE(kind);
    compare([&](journal& log) {
      pair ends(kind);
      put(ends.writer.get(), "12345");
      read_and_note(log, ends.reader.get(), 3);
      if (kind != "datagram" && kind != "seqpacket") read_and_note(log, ends.reader.get(), 64);
      log.mode(ends.reader.get());
      ends.writer.close();
      if (kind != "datagram" && kind != "terminal") read_and_note(log, ends.reader.get(), 64);
    });
  }
}

TEST_CASE("read() in a fiber waits for data, and other fibers run meanwhile") {
  for (const std::string kind : kinds) {
    CAPTURE(kind);
    compare_waiting([&](journal& log) {
      pair ends(kind);
      const later writer([&] { put(ends.writer.get(), "late"); });
      read_and_note(log, ends.reader.get(), 64);
      log.mode(ends.reader.get());
    });
  }
}

TEST_CASE("readv() in a fiber fills its buffers in order") {
  for (const std::string kind : kinds) {
    CAPTURE(kind);
    compare([&](journal& log) {
      pair ends(kind);
      std::array<char, 3> first{};
      std::array<char, 3> second{};
      const std::array<iovec, 3> vectors{
          {{first.data(), first.size()}, {nullptr, 0}, {second.data(), second.size()}}};
      const later writer([&] { put(ends.writer.get(), "abcde"); });
      const ssize_t size = log.call("readv", ::readv(ends.reader.get(), vectors.data(), 3));
      log.text("first", {first.data(), first.size()});
      log.text("second", {second.data(), static_cast<std::size_t>(std::max<ssize_t>(size - 3, 0))});
      log.call("readv", ::readv(ends.reader.get(), vectors.data(), count_of(-1)));
      log.call("readv", ::readv(ends.reader.get(), vectors.data(), count_of(2000)));
    });
  }
}

TEST_CASE("read() and write() in a fiber leave a descriptor in non-blocking mode to the program") {
  for (const std::string kind : {"stream", "datagram", "seqpacket", "pipe"}) {
    CAPTURE(kind);
    compare([&](journal& log) {
      pair ends(kind);
      ends.nonblocking();
      read_and_note(log, ends.reader.get(), 64);
      const std::string block(16'384, 'x');
      ssize_t size = 0;
      for (int i = 0; size >= 0 && i < 1000; ++i)
        size = log.call("write", ::write(ends.writer.get(), block.data(), block.size()));
      log.mode(ends.writer.get());
    });
  }
}

TEST_CASE("write() in a fiber returns when all is written") {
  for (const std::string kind : {"stream", "tcp", "pipe", "terminal"}) {
    CAPTURE(kind);
    compare_waiting([&](journal& log) {
      pair ends(kind);
      const std::string block(1'000'000, 'x');
      std::size_t drained = 0;
      {
        const later reader([&] {
          std::array<char, 65'536> buffer{};
          while (drained < block.size()) {
            const ssize_t size = ::read(ends.reader.get(), buffer.data(), buffer.size());
            if (size <= 0) break;
            drained += static_cast<std::size_t>(size);
          }
        });
        log.call("write", ::write(ends.writer.get(), block.data(), block.size()));
      }
      log.number("drained", static_cast<long>(drained));
      log.mode(ends.writer.get());
    });
  }
}

TEST_CASE("writev() in a fiber returns when all buffers are written") {
  for (const std::string kind : {"stream", "tcp", "pipe", "terminal"}) {
    CAPTURE(kind);
    compare_waiting([&](journal& log) {
      pair ends(kind);
      std::string data(500'000, 'a');
      std::iota(data.begin(), data.end(), '\0');
      std::array<iovec, 100> vectors{};
      for (std::size_t i = 0; i < vectors.size(); ++i) vectors[i] = {&data[5'000 * i], 5'000};
      std::string drained;
      {
        const later reader([&] {
          std::array<char, 3'000> buffer{};
          while (drained.size() < data.size()) {
            const ssize_t size = ::read(ends.reader.get(), buffer.data(), buffer.size());
            if (size <= 0) break;
            drained.append(buffer.data(), static_cast<std::size_t>(size));
          }
        });
        log.call("writev", ::writev(ends.writer.get(), vectors.data(), 100));
      }
      log.number("equal", drained == data ? 1 : 0);
    });
  }
}

TEST_CASE("write() in a fiber raises SIGPIPE when nobody reads") {
  static volatile sig_atomic_t raised = 0;
  struct sigaction action{};
  struct sigaction previous{};
  action.sa_handler = [](int) { raised = raised + 1; };
  ::sigaction(SIGPIPE, &action, &previous);
  for (const std::string kind : {"stream", "seqpacket", "pipe"}) {
    CAPTURE(kind);
    compare([&](journal& log) {
      pair ends(kind);
      ends.reader.close();
      raised = 0;
      log.call("write", ::write(ends.writer.get(), "x", 1));
      log.number("raised", raised);
      if (!is_socket(kind)) return;
      log.call("send", ::send(ends.writer.get(), "x", 1, MSG_NOSIGNAL));
      log.number("raised", raised);
      log.call("send", ::send(ends.writer.get(), "x", 1, 0));
      log.number("raised", raised);
    });
  }
  ::sigaction(SIGPIPE, &previous, nullptr);
}

TEST_CASE("recv() in a fiber keeps SO_RCVTIMEO, and send() SO_SNDTIMEO") {
  for (const std::string kind : socket_kinds) {
    CAPTURE(kind);
    compare([&](journal& log) {
      pair ends(kind);
      limit(ends.reader.get(), SO_RCVTIMEO, 20ms);
      limit(ends.writer.get(), SO_SNDTIMEO, 20ms);
      std::array<char, 8> buffer{};
      const auto start = std::chrono::steady_clock::now();
      log.call("recv", ::recv(ends.reader.get(), buffer.data(), buffer.size(), 0));
      log.call("read", ::read(ends.reader.get(), buffer.data(), buffer.size()));
      const std::string block(10'000, 'x');
      ssize_t size = 0;
      for (int i = 0; size >= 0 && i < 1000; ++i)
        size = ::send(ends.writer.get(), block.data(), block.size(), 0);
      log.call("send", size);
      const auto span = std::chrono::steady_clock::now() - start;
      log.number("in time", span >= 55ms && span < 500ms ? 1 : 0);
    });
  }
}

TEST_CASE("recv() in a fiber with its flags") {
  for (const std::string kind : socket_kinds) {
    CAPTURE(kind);
    compare([&](journal& log) {
      pair ends(kind);
      std::array<char, 8> buffer{};
      const auto receive = [&](int flags) {
        const ssize_t size =
            log.call("recv", ::recv(ends.reader.get(), buffer.data(), buffer.size(), flags));
        if (size > 0)
          log.text("data",
                   {buffer.data(), std::min<std::size_t>(static_cast<std::size_t>(size), 8)});
      };
      receive(MSG_DONTWAIT);
      put(ends.writer.get(), "0123");
      receive(MSG_PEEK);
      receive(MSG_TRUNC);
      {
        const later writer([&] {
          put(ends.writer.get(), "abcd");
          std::this_thread::sleep_for(10ms);
          put(ends.writer.get(), "efgh");
        });
        receive(MSG_WAITALL);
      }
      put(ends.writer.get(), "0123456789");
      receive(0);
      ::shutdown(ends.writer.get(), SHUT_WR);
      if (kind == "stream") receive(MSG_WAITALL);
    });
  }
}

TEST_CASE("recvmsg() and sendmsg() in a fiber pass descriptors") {
  for (const std::string kind : {"stream", "datagram", "seqpacket"}) {
    CAPTURE(kind);
    compare_waiting([&](journal& log) {
      pair ends(kind);
      const motet::fd passed(::eventfd(7, 0));
      const auto message_of = [](iovec& vector, auto& control) {
        msghdr message{};
        message.msg_iov = &vector;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        return message;
      };
      const later sender([&] {
        alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
        char byte = 'x';
        iovec vector{&byte, 1};
        msghdr message = message_of(vector, control);
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        const int number = passed.get();
        std::memcpy(CMSG_DATA(header), &number, sizeof number);
        ::sendmsg(ends.writer.get(), &message, 0);
      });
      alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
      std::array<char, 4> buffer{};
      iovec vector{buffer.data(), buffer.size()};
      msghdr message = message_of(vector, control);
      log.call("recvmsg", ::recvmsg(ends.reader.get(), &message, 0));
      log.number("flags", message.msg_flags);
      const cmsghdr* header = CMSG_FIRSTHDR(&message);
      REQUIRE(header != nullptr);
      int number = -1;
      std::memcpy(&number, CMSG_DATA(header), sizeof number);
      log.number("closes on exec", ::fcntl(number, F_GETFD));
      std::uint64_t value = 0;
      log.call("read", ::read(number, &value, sizeof value));
      log.number("value", static_cast<long>(value));
      ::close(number);
    });
  }
}

TEST_CASE("recvmmsg() and sendmmsg() in a fiber count messages") {
  compare_waiting([&](journal& log) {
    pair ends("datagram");
    std::array<std::array<char, 8>, 4> buffers{};
    std::array<iovec, 4> vectors{};
    std::array<mmsghdr, 4> messages{};
    const auto prepare = [&] {
      for (std::size_t i = 0; i < messages.size(); ++i) {
        vectors[i] = {buffers[i].data(), buffers[i].size()};
        messages[i] = {};
        messages[i].msg_hdr.msg_iov = &vectors[i];
        messages[i].msg_hdr.msg_iovlen = 1;
      }
    };
    prepare();
    log.call("sendmmsg", ::sendmmsg(ends.writer.get(), messages.data(), 3, 0));
    prepare();
    log.call("recvmmsg", ::recvmmsg(ends.reader.get(), messages.data(), 2, 0, nullptr));
    log.number("length", messages[1].msg_len);
    log.call("recvmmsg",
             ::recvmmsg(ends.reader.get(), messages.data(), 4, MSG_WAITFORONE, nullptr));
    const later writer([&] { put(ends.writer.get(), "late"); });
    log.call("recvmmsg",
             ::recvmmsg(ends.reader.get(), messages.data(), 4, MSG_WAITFORONE, nullptr));
    log.number("length", messages[0].msg_len);
    log.call("recvmmsg", ::recvmmsg(ends.reader.get(), messages.data(), 4, MSG_DONTWAIT, nullptr));
  });
}

TEST_CASE("read() and write() in a fiber fail with the errors of a thread") {
  compare([](journal& log) {
    char byte = 0;
    log.call("read", ::read(-1, &byte, 1));
    log.call("write", ::write(-1, &byte, 1));
    log.call("recv", ::recv(-1, &byte, 1, 0));
    pair ends("pipe");
    log.call("read", ::read(ends.writer.get(), &byte, 1));
    log.call("write", ::write(ends.reader.get(), &byte, 1));
    log.call("recv", ::recv(ends.reader.get(), &byte, 1, 0));
    log.call("send", ::send(ends.writer.get(), &byte, 1, 0));
    log.call("read", ::read(ends.reader.get(), nullptr, 0));
    log.call("write", ::write(ends.writer.get(), nullptr, 0));
    put(ends.writer.get(), "x");
    log.call("read", ::read(ends.reader.get(), bad_address(), 1));
    log.call("write", ::write(ends.writer.get(), bad_address(), 1));
    const int directory = ::open("/", O_RDONLY | O_DIRECTORY);
    log.call("read", ::read(directory, &byte, 1));
    ::close(directory);
  });
}

TEST_CASE("read() and write() in a fiber on files, and on what counts events") {
  compare([](journal& log) {
    std::string path = "/tmp/motet-posix-XXXXXX";
    const motet::fd file(::mkstemp(path.data()));
    ::unlink(path.c_str());
    const std::string block(300'000, 'y');
    log.call("write", ::write(file.get(), block.data(), block.size()));
    ::lseek(file.get(), 0, SEEK_SET);
    std::string back(400'000, ' ');
    log.call("read", ::read(file.get(), back.data(), back.size()));
    log.call("read", ::read(file.get(), back.data(), back.size()));
    const motet::fd counter(::eventfd(0, 0));
    const later adder([&] {
      const std::uint64_t five = 5;
      CHECK(::write(counter.get(), &five, sizeof five) == sizeof five);
    });
    std::uint64_t value = 0;
    log.call("read", ::read(counter.get(), &value, sizeof value));
    log.number("value", static_cast<long>(value));
    log.call("read", ::read(counter.get(), &value, 4));
  });
}

TEST_CASE("recv() in a fiber with MSG_ERRQUEUE never waits") {
  compare([](journal& log) {
    const motet::fd socket(::socket(AF_INET, SOCK_DGRAM, 0));
    const int on = 1;
    REQUIRE(::setsockopt(socket.get(), IPPROTO_IP, IP_RECVERR, &on, sizeof on) == 0);
    std::array<char, 8> buffer{};
    log.call("recv", ::recv(socket.get(), buffer.data(), buffer.size(), MSG_ERRQUEUE));
  });
}

TEST_CASE("recv() in a fiber with MSG_PEEK and MSG_WAITALL keeps SO_RCVTIMEO") {
  for (const std::string kind : {"stream", "tcp"}) {
    compare_waiting([&](journal& log) {
      pair ends(kind);
      limit(ends.reader.get(), SO_RCVTIMEO, 30ms);
      std::array<char, 8> buffer{};
      put(ends.writer.get(), "abc");
      const int flags = MSG_PEEK | MSG_WAITALL;
      log.call("recv", ::recv(ends.reader.get(), buffer.data(), buffer.size(), flags));
      const later writer([&] { put(ends.writer.get(), "defgh"); });
      limit(ends.reader.get(), SO_RCVTIMEO, 0ms);
      log.call("recv", ::recv(ends.reader.get(), buffer.data(), buffer.size(), flags));
      log.text("data", {buffer.data(), buffer.size()});
      log.call("recv", ::recv(ends.reader.get(), buffer.data(), buffer.size(), MSG_WAITALL));
    });
  }
}

TEST_CASE("recv() in a fiber with MSG_WAITALL gets what a closed peer has left") {
  for (int i = 0; i < 50; ++i) {
    compare([&](journal& log) {
      pair ends(i % 2 == 0 ? "stream" : "tcp");
      std::array<char, 64> buffer{};
      std::thread writer([&] {
        for (const char* part : {"1234", "567890", "abcdefgh"}) put(ends.writer.get(), part);
        ends.writer.close();
      });
      log.call("recv", ::recv(ends.reader.get(), buffer.data(), buffer.size(), MSG_WAITALL));
      writer.join();
    });
  }
}

TEST_CASE("read() in a fiber returns one piece of a file that the kernel writes") {
  compare([](journal& log) {
    const motet::fd file(::open("/proc/kallsyms", O_RDONLY | O_CLOEXEC));
    std::string buffer(1 << 20, ' ');
    log.call("read", ::read(file.get(), buffer.data(), buffer.size()));
  });
}

TEST_CASE("write() in a fiber waits until an eventfd has room") {
  compare_waiting([](journal& log) {
    const motet::fd counter(::eventfd(0, 0));
    const std::uint64_t most = 0xfffffffffffffffe;
    const std::uint64_t one = 1;
    log.call("write", ::write(counter.get(), &most, sizeof most));
    const later reader([&] {
      std::uint64_t value = 0;
      CHECK(::read(counter.get(), &value, sizeof value) == sizeof value);
    });
    log.call("write", ::write(counter.get(), &one, sizeof one));
  });
}

TEST_CASE("read() and write() in a fiber leave errno as it was if they succeed") {
  for (const std::string kind : kinds) {
    CAPTURE(kind);
    compare([&](journal& log) {
      pair ends(kind);
      std::array<char, 8> buffer{};
      const auto note = [&](ssize_t size) {
        const int error = errno;
        log.call("size", size);
        log.number("errno", error);
      };
      errno = 77;
      note(::write(ends.writer.get(), "abcd", 4));
      note(::read(ends.reader.get(), buffer.data(), buffer.size()));
      const later writer([&] { put(ends.writer.get(), "late"); });
      errno = 78;
      note(::read(ends.reader.get(), buffer.data(), buffer.size()));
    });
  }
}

TEST_CASE("recv() in a fiber finds the end of a datagram socket that is shut down") {
  for (const bool meanwhile : {false, true}) {
    CAPTURE(meanwhile);
    compare([&](journal& log) {
      pair ends("datagram");
      std::array<char, 8> buffer{};
      put(ends.writer.get(), "last");
      if (!meanwhile) ::shutdown(ends.reader.get(), SHUT_RD);
      read_and_note(log, ends.reader.get(), 8);
      const later closer([&] { ::shutdown(ends.reader.get(), SHUT_RD); });
      log.call("recv", ::recv(ends.reader.get(), buffer.data(), buffer.size(), 0));
      log.call("read", ::read(ends.reader.get(), buffer.data(), buffer.size()));
    });
  }
}

TEST_CASE("read() in a fiber from a raw terminal keeps VMIN and VTIME") {
  for (const auto& limits : {std::pair{0, 0}, {0, 1}, {3, 0}}) {
    const int least = limits.first;
    const int tenths = limits.second;
    CAPTURE(least, tenths);
    compare([&](journal& log) {
      pair ends("terminal");
      termios mode{};
      REQUIRE(::tcgetattr(ends.reader.get(), &mode) == 0);
      mode.c_cc[VMIN] = static_cast<cc_t>(least);
      mode.c_cc[VTIME] = static_cast<cc_t>(tenths);
      REQUIRE(::tcsetattr(ends.reader.get(), TCSANOW, &mode) == 0);
      if (least == 0) read_and_note(log, ends.reader.get(), 8);
      put(ends.writer.get(), "abc");
      read_and_note(log, ends.reader.get(), 8);
    });
  }
}

TEST_CASE("recv() and send() in a fiber leave the error of a reset to the next call") {
  const auto reset = [](motet::fd& end) {
    const linger now{1, 0};
    ::setsockopt(end.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
    ::close(end.release());
  };
  SECTION("recv()") {
    compare([&](journal& log) {
      pair ends("tcp");
      std::array<char, 8> buffer{};
      put(ends.writer.get(), "ab");
      const later closer([&] { reset(ends.writer); });
      for (int i = 0; i < 3; ++i)
        log.call("recv", ::recv(ends.reader.get(), buffer.data(), 6, MSG_WAITALL));
    });
  }
  SECTION("send()") {
    compare([&](journal& log) {
      pair ends("tcp");
      const std::string block(16'000'000, 'x');
      const later closer([&] { reset(ends.reader); });
      const auto sent = ::send(ends.writer.get(), block.data(), block.size(), MSG_NOSIGNAL);
      log.number("in part", sent > 0 && sent < 16'000'000 ? 1 : 0);
      for (int i = 0; i < 2; ++i)
        log.call("send", ::send(ends.writer.get(), block.data(), 1, MSG_NOSIGNAL));
    });
  }
  SECTION("write() to a Unix socket whose peer leaves data behind") {
    compare([&](journal& log) {
      pair ends("stream");
      put(ends.reader.get(), "unread");
      const std::string block(4'096, 'x');
      while (::send(ends.writer.get(), block.data(), block.size(), MSG_DONTWAIT) > 0) {
      }
      const later closer([&] { ends.reader.close(); });
      log.call("write", ::write(ends.writer.get(), block.data(), 10));
      std::string back(16, ' ');
      log.call("recv", ::recv(ends.writer.get(), back.data(), back.size(), 0));
    });
  }
}

TEST_CASE("recvmsg() in a fiber with MSG_WAITALL receives descriptors of a later part") {
  compare_waiting([](journal& log) {
    pair ends("stream");
    put(ends.writer.get(), "ab");
    const later sender([&] {
      alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control{};
      std::array<char, 2> bytes{'c', 'd'};
      iovec vector{bytes.data(), bytes.size()};
      msghdr message{};
      message.msg_iov = &vector;
      message.msg_iovlen = 1;
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(2 * sizeof(int));
      const std::array<int, 2> numbers{ends.writer.get(), ends.reader.get()};
      std::memcpy(CMSG_DATA(header), numbers.data(), sizeof numbers);
      ::sendmsg(ends.writer.get(), &message, 0);
      put(ends.writer.get(), "ef");
    });
    alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control{};
    std::array<char, 6> buffer{};
    iovec vector{buffer.data(), buffer.size()};
    msghdr message{};
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    log.call("recvmsg", ::recvmsg(ends.reader.get(), &message, MSG_WAITALL));
    log.number("control", static_cast<long>(message.msg_controllen));
    log.number("flags", message.msg_flags);
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header == nullptr) return;
    std::array<int, 2> numbers{-1, -1};
    std::memcpy(numbers.data(), CMSG_DATA(header), sizeof numbers);
    for (const int number : numbers) log.call("close", ::close(number));
    read_and_note(log, ends.reader.get(), 6);
  });
}
