// SPDX-License-Identifier: MIT
// sendfile(2), splice(2) and tee(2) in a fiber have the results that they have on a thread.
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <motet/posix.hpp>
#include <string>
#include <string_view>

#include "posix/journal.hpp"
#include "posix/pair.hpp"

namespace {

using namespace testing;
using namespace std::chrono_literals;

std::string text_of(std::size_t size) {
  std::string text(size, ' ');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + i % 26);
  return text;
}

motet::fd file_with(std::string_view text) {
  std::string path = "/tmp/motet-posix-XXXXXX";
  motet::fd file(::mkostemp(path.data(), O_CLOEXEC));
  ::unlink(path.c_str());
  REQUIRE(::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  REQUIRE(::lseek(file.get(), 0, SEEK_SET) == 0);
  return file;
}

/// Reads `size` bytes, or to the end.
std::string drain(int fd, std::size_t size) {
  std::string text;
  std::array<char, 65'536> buffer{};
  while (text.size() < size) {
    const ssize_t count = ::read(fd, buffer.data(), std::min(buffer.size(), size - text.size()));
    if (count <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return text;
}

/// Fills a pipe or a socket. Returns: how many bytes that took.
std::size_t fill(int fd) {
  const std::string block(4'096, 'f');
  const int mode = ::fcntl(fd, F_GETFL);
  ::fcntl(fd, F_SETFL, mode | O_NONBLOCK);
  std::size_t total = 0;
  for (ssize_t size = 0; (size = ::write(fd, block.data(), block.size())) > 0;)
    total += static_cast<std::size_t>(size);
  ::fcntl(fd, F_SETFL, mode);
  return total;
}

const std::array flowing{"stream", "tcp", "pipe"};

}  // namespace

TEST_CASE("sendfile() in a fiber waits for room, and sends all to a socket") {
  const std::string text = text_of(3'000'000);
  for (const std::string kind : flowing) {
    for (const bool has_offset : {false, true}) {
      CAPTURE(kind, has_offset);
      compare_waiting([&](journal& log) {
        pair ends(kind);
        const motet::fd file = file_with(text);
        off_t offset = 1'000;
        std::string drained;
        {
          const later reader([&] {
            std::this_thread::sleep_for(10ms);
            drained = drain(ends.reader.get(), text.size() - (has_offset ? 1'000 : 0));
          });
          off_t* const position = has_offset ? &offset : nullptr;
          ssize_t total = 0;
          for (ssize_t size = 1; size > 0; total += size) {
            size = ::sendfile(ends.writer.get(), file.get(), position, text.size() + 5);
            if (kind != "pipe") log.call("sendfile", size);
          }
          log.number("total", total);
        }
        log.number("same", drained == text.substr(has_offset ? 1'000 : 0) ? 1 : 0);
        log.number("offset", offset);
        log.number("position", ::lseek(file.get(), 0, SEEK_CUR));
        log.call("sendfile", ::sendfile(ends.writer.get(), file.get(), &offset, 0));
        log.mode(ends.writer.get());
      });
    }
  }
}

TEST_CASE("sendfile() in a fiber stops at the end of the file, and at a time limit") {
  for (const std::string kind : {"stream", "tcp"}) {
    CAPTURE(kind);
    compare([&](journal& log) {
      pair ends(kind);
      const motet::fd file = file_with(text_of(100));
      log.call("sendfile", ::sendfile(ends.writer.get(), file.get(), nullptr, 60));
      log.call("sendfile", ::sendfile(ends.writer.get(), file.get(), nullptr, 60));
      log.call("sendfile", ::sendfile(ends.writer.get(), file.get(), nullptr, 60));
      log.text("data", drain(ends.reader.get(), 100));
      fill(ends.writer.get());
      const timeval limit{0, 20'000};
      ::setsockopt(ends.writer.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
      off_t start = 0;
      log.call("sendfile", ::sendfile(ends.writer.get(), file.get(), &start, 60));
      log.number("offset", start);
    });
  }
}

TEST_CASE("sendfile() in a fiber has the errors of a thread") {
  for (const std::string kind : flowing) {
    CAPTURE(kind);
    compare([&](journal& log) {
      ::signal(SIGPIPE, SIG_IGN);
      pair ends(kind);
      const motet::fd file = file_with(text_of(100));
      log.call("from nothing", ::sendfile(ends.writer.get(), -1, nullptr, 60));
      log.call("to nothing", ::sendfile(-1, file.get(), nullptr, 60));
      const motet::fd target = file_with("");
      log.call("to a file", ::sendfile(target.get(), file.get(), nullptr, 60));
      ends.nonblocking();
      fill(ends.writer.get());
      ::fcntl(ends.writer.get(), F_SETFL, ::fcntl(ends.writer.get(), F_GETFL) | O_NONBLOCK);
      log.call("without room", ::sendfile(ends.writer.get(), file.get(), nullptr, 60));
      if (kind == "tcp") return;
      ends.reader.close();
      log.call("without a reader", ::sendfile(ends.writer.get(), file.get(), nullptr, 60));
    });
  }
}

TEST_CASE("sendfile() that a time limit ends returns what it has sent") {
  motet::run([] {
    pair ends("stream");
    const motet::fd file = file_with(text_of(4'000'000));
    ssize_t size = 0;
    CHECK(!motet::move_on_after(
        20ms, [&] { size = ::sendfile(ends.writer.get(), file.get(), nullptr, 4'000'000); }));
    CHECK(size > 0);
    CHECK(size < 4'000'000);
    CHECK(::lseek(file.get(), 0, SEEK_CUR) == size);
    ::shutdown(ends.writer.get(), SHUT_WR);
    CHECK(drain(ends.reader.get(), 4'000'000) == text_of(static_cast<std::size_t>(size)));
  });
}

TEST_CASE("splice() in a fiber waits for data") {
  for (const std::string from : flowing) {
    for (const std::string to : flowing) {
      if (from != "pipe" && to != "pipe") continue;
      CAPTURE(from, to);
      compare_waiting([&](journal& log) {
        pair source(from);
        pair target(to);
        {
          const later writer([&] { REQUIRE(::write(source.writer.get(), "some text", 9) == 9); });
          log.call("splice",
                   ::splice(source.reader.get(), nullptr, target.writer.get(), nullptr, 65'536, 0));
        }
        log.text("data", drain(target.reader.get(), 9));
        source.writer.close();
        log.call("splice",
                 ::splice(source.reader.get(), nullptr, target.writer.get(), nullptr, 65'536, 0));
        log.mode(source.reader.get());
        log.mode(target.writer.get());
      });
    }
  }
}

TEST_CASE("splice() in a fiber waits for room") {
  const std::string text = text_of(20'000);
  for (const std::string to : flowing) {
    CAPTURE(to);
    compare_waiting([&](journal& log) {
      pair source("pipe");
      pair target(to);
      const std::size_t filled = fill(target.writer.get());
      REQUIRE(::write(source.writer.get(), text.data(), text.size()) == 20'000);
      std::string drained;
      {
        const later reader([&] {
          std::this_thread::sleep_for(10ms);
          drained = drain(target.reader.get(), filled);
        });
        log.call("splice", ::splice(source.reader.get(), nullptr, target.writer.get(), nullptr,
                                    text.size(), 0));
      }
      drained += drain(target.reader.get(), text.size());
      log.number("same", drained.substr(filled) == text ? 1 : 0);
    });
  }
}

TEST_CASE("splice() in a fiber makes one message of what is in the pipe") {
  for (const std::string to : {"datagram", "seqpacket"}) {
    CAPTURE(to);
    compare([&](journal& log) {
      pair source("pipe");
      pair target(to);
      const std::string text = text_of(10'000);
      REQUIRE(::write(source.writer.get(), text.data(), text.size()) == 10'000);
      log.call("splice", ::splice(source.reader.get(), nullptr, target.writer.get(), nullptr,
                                  text.size(), 0));
      std::string message(20'000, ' ');
      log.call("recv", ::recv(target.reader.get(), message.data(), message.size(), MSG_DONTWAIT));
    });
  }
}

TEST_CASE("splice() in a fiber has the errors of a thread without waiting first") {
  compare([](journal& log) {
    ::signal(SIGPIPE, SIG_IGN);
    const pair empty("stream");
    const pair other("stream");
    pair pipe("pipe");
    const auto splice = [&](int from, off64_t* offset, int to) {
      return ::splice(from, offset, to, nullptr, 100, 0);
    };
    off64_t offset = 0;
    log.call("no pipe", splice(empty.reader.get(), nullptr, other.writer.get()));
    log.call("no target", splice(empty.reader.get(), nullptr, -1));
    log.call("offset", splice(empty.reader.get(), &offset, pipe.writer.get()));
    const pair mixed("pipe");
    ::fcntl(mixed.reader.get(), F_SETFL, O_NONBLOCK);
    log.call("non-blocking", splice(mixed.reader.get(), nullptr, pipe.writer.get()));
    log.call("tee", ::tee(mixed.reader.get(), pipe.writer.get(), 100, 0));
    pipe.reader.close();
    log.call("no reader", splice(empty.reader.get(), nullptr, pipe.writer.get()));
  });
}

TEST_CASE("splice() in a fiber waits for a terminal") {
  compare_waiting([](journal& log) {
    pair source("terminal");
    pair target("pipe");
    {
      const later writer([&] { REQUIRE(::write(source.writer.get(), "typed", 5) == 5); });
      log.call("splice",
               ::splice(source.reader.get(), nullptr, target.writer.get(), nullptr, 100, 0));
    }
    log.text("data", drain(target.reader.get(), 5));
  });
}

TEST_CASE(
    "splice() and sendfile() in a fiber end with EBADF when another fiber closes the other end") {
  motet::run([] {
    pair source("pipe");
    pair target("stream");
    motet::fiber<void> mover = motet::spin([&] {
      CHECK(::splice(source.reader.get(), nullptr, target.writer.get(), nullptr, 100, 0) == -1);
      CHECK(errno == EBADF);
    });
    motet::sleep_for(5ms);
    const int number = target.writer.release();
    CHECK(::close(number) == 0);
    const pair reused("stream");  // has the number
    CHECK(::write(source.writer.get(), "lost", 4) == 4);
    mover.await();
    std::array<char, 8> data{};
    CHECK(::recv(reused.reader.get(), data.data(), data.size(), MSG_DONTWAIT) == -1);
    CHECK(::recv(reused.writer.get(), data.data(), data.size(), MSG_DONTWAIT) == -1);
  });
}

TEST_CASE("splice() in a fiber moves between a file and a pipe") {
  compare_waiting([](journal& log) {
    pair ends("pipe");
    const motet::fd file = file_with(text_of(1'000));
    off64_t offset = 100;
    log.call("splice", ::splice(file.get(), &offset, ends.writer.get(), nullptr, 500, 0));
    log.number("offset", offset);
    log.text("data", drain(ends.reader.get(), 500));
    const motet::fd target = file_with("");
    {
      const later writer([&] { REQUIRE(::write(ends.writer.get(), "to a file", 9) == 9); });
      log.call("splice", ::splice(ends.reader.get(), nullptr, target.get(), nullptr, 100, 0));
    }
    std::array<char, 9> data{};
    log.call("pread", ::pread(target.get(), data.data(), data.size(), 0));
    log.text("data", {data.data(), data.size()});
    log.call("splice", ::splice(file.get(), nullptr, target.get(), nullptr, 100, 0));
    log.call("splice", ::splice(-1, nullptr, ends.writer.get(), nullptr, 100, 0));
    ends.nonblocking();
    log.call("splice", ::splice(ends.reader.get(), nullptr, target.get(), nullptr, 100, 0));
    log.call("splice",
             ::splice(ends.reader.get(), nullptr, target.get(), nullptr, 100, SPLICE_F_NONBLOCK));
  });
}

TEST_CASE("tee() in a fiber waits for data and for room") {
  compare_waiting([](journal& log) {
    pair source("pipe");
    pair target("pipe");
    {
      const later writer([&] { REQUIRE(::write(source.writer.get(), "twice", 5) == 5); });
      log.call("tee", ::tee(source.reader.get(), target.writer.get(), 100, 0));
    }
    log.text("copy", drain(target.reader.get(), 5));
    const std::size_t filled = fill(target.writer.get());
    {
      const later reader([&] { drain(target.reader.get(), filled); });
      log.call("tee", ::tee(source.reader.get(), target.writer.get(), 100, 0));
    }
    log.text("copy", drain(target.reader.get(), 5));
    log.text("data", drain(source.reader.get(), 5));
    log.call("tee", ::tee(-1, target.writer.get(), 100, 0));
    source.writer.close();
    log.call("tee", ::tee(source.reader.get(), target.writer.get(), 100, 0));
  });
}

TEST_CASE("motet-posix: a time limit ends splice() and tee() before they have moved anything") {
  motet::run([] {
    pair source("pipe");
    pair target("pipe");
    for (const bool copies : {false, true}) {
      CHECK(!motet::move_on_after(10ms, [&] {
        const ssize_t size =
            copies ? ::tee(source.reader.get(), target.writer.get(), 100, 0)
                   : ::splice(source.reader.get(), nullptr, target.writer.get(), nullptr, 100, 0);
        CHECK(size == -1);
        CHECK(errno == ECANCELED);
      }));
    }
  });
}
