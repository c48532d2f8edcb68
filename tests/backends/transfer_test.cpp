// SPDX-License-Identifier: MIT
// The seam, where bytes are moved: whatever a backend is built on, the same operations have the
// same outcomes, and each comes back exactly once.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <motet/runtime/backend.hpp>
#include <string>

#include "backends/machine.hpp"
#include "base/verb_table.hpp"
#include "catch.hpp"
#include "core/file_call.hpp"
#include "sockets.hpp"
#include "support.hpp"

using namespace motet;
using testing::all_kinds;
using testing::block;
using testing::connected;
using testing::counted_signal;
using testing::describe_connect;
using testing::done_anyhow;
using testing::machine;
using testing::make_pipe;
using testing::make_socket_pair;
using testing::put;
using testing::reading_verbs;
using testing::signals_seen;
using testing::trial;
using testing::writing_verbs;

namespace {

bool is_pending(int signal) {
  sigset_t signals;
  ::sigpending(&signals);
  return ::sigismember(&signals, signal) == 1;
}

}  // namespace

TEST_CASE("backend read ends once with the bytes that are there, or waits for some", "[backend]") {
  machine m;
  for (connected& pair : all_kinds()) {
    const int mode = ::fcntl(pair.ends.first(), F_GETFL);
    for (const verb kind : reading_verbs(pair.socket)) {
      INFO(pair.kind << ", verb " << static_cast<int>(kind));
      block ready(8);
      trial at_once;
      ready.describe(at_once, kind, pair.ends.first());
      put(pair.ends.second(), "abc");
      CHECK(m.perform(at_once) == 3);
      CHECK(ready.bytes == "abc.....");

      block next_block(8);
      trial second;
      next_block.describe(second, kind, pair.ends.first());
      m.submit(second);
      m.look();
      CHECK(second.ends == 0);
      put(pair.ends.second(), "defgh");
      CHECK(m.result_of(second) == 5);
      CHECK(next_block.bytes == "defgh...");
    }
    CHECK(::fcntl(pair.ends.first(), F_GETFL) == mode);
  }
}

TEST_CASE("backend write ends once, and waits while there is no room", "[backend]") {
  machine m;
  for (connected& pair : all_kinds()) {
    const int mode = ::fcntl(pair.ends.second(), F_GETFL);
    for (const verb kind : writing_verbs(pair.socket)) {
      INFO(pair.kind << ", verb " << static_cast<int>(kind));
      block text(6, 'x');
      trial at_once;
      text.describe(at_once, kind, pair.ends.second());
      CHECK(m.perform(at_once) == 6);
      CHECK(testing::take_all(pair.ends.first()) == "xxxxxx");

      testing::fill(pair.ends.second());
      trial second;
      text.describe(second, kind, pair.ends.second());
      m.submit(second);
      m.look();
      CHECK(second.ends == 0);
      // A kernel may write as soon as there is room: then the text is taken with what filled it.
      std::string bytes = testing::take_all(pair.ends.first());
      CHECK(m.result_of(second) == 6);
      bytes += testing::take_all(pair.ends.first());
      CHECK(bytes.substr(bytes.size() - 6) == "xxxxxx");
      CHECK(std::count(bytes.begin(), bytes.end(), 'x') == 6);
    }
    CHECK(::fcntl(pair.ends.second(), F_GETFL) == mode);
  }
}

TEST_CASE("backend write returns how much it wrote if there is little room", "[backend]") {
  machine m;
  for (connected& pair : all_kinds()) {
    for (const verb kind : writing_verbs(pair.socket)) {
      INFO(pair.kind << ", verb " << static_cast<int>(kind));
      block large(std::size_t{8} << 20, 'x');
      trial part;
      large.describe(part, kind, pair.ends.second());
      const std::int32_t length = m.perform(part);
      CHECK(length > 0);
      CHECK(length < 8 << 20);
      CHECK(testing::take_all(pair.ends.first()).size() == static_cast<std::size_t>(length));
    }
  }
}

TEST_CASE("backend read returns 0 at the end of the stream, before and while it waits",
          "[backend]") {
  machine m;
  for (const bool waits : {false, true}) {
    for (connected& pair : all_kinds()) {
      for (const verb kind : reading_verbs(pair.socket)) {
        INFO(pair.kind << ", verb " << static_cast<int>(kind) << ", waits: " << waits);
        auto ends = pair.make();
        block buffer(8);
        trial last;
        buffer.describe(last, kind, ends.first());
        if (waits) {
          m.submit(last);
          m.look();
          CHECK(last.ends == 0);
        }
        ends.close_second();
        if (!waits) m.submit(last);
        CHECK(m.result_of(last) == 0);
      }
    }
  }
}

TEST_CASE("backend read returns the bytes before the end of the stream", "[backend]") {
  machine m;
  for (connected& pair : all_kinds()) {
    INFO(pair.kind);
    put(pair.ends.second(), "last words");
    pair.ends.close_second();
    block buffer(64);
    trial first;
    buffer.describe(first, verb::read, pair.ends.first());
    CHECK(m.perform(first) == 10);
    trial second;
    buffer.describe(second, verb::read, pair.ends.first());
    CHECK(m.perform(second) == 0);
  }
}

TEST_CASE("backend verbs return EBADF for a closed descriptor", "[backend]") {
  machine m;
  int old_number = -1;
  {
    const auto old_pair = make_socket_pair();
    old_number = old_pair.first();
  }
  std::byte buffer[8];
  iovec vectors{buffer, sizeof buffer};
  msghdr message{};
  message.msg_iov = &vectors;
  message.msg_iovlen = 1;
  struct ::statx status{};
  const sockaddr_in nowhere = testing::loopback_address(1);
  for (int kind = 0; kind <= static_cast<int>(verb::wait_fd); ++kind) {
    INFO("verb " << kind);
    trial refused(static_cast<verb>(kind), old_number, buffer, sizeof buffer);
    using detail::payload;
    const payload carried = detail::row_of(refused.op.kind).carries;
    if (carried == payload::vectors) {
      refused.op.vectors = &vectors;
      refused.op.length = 1;
    }
    if (carried == payload::message) refused.op.message = &message;
    if (carried == payload::peer) refused.op.address = nullptr;
    if (carried == payload::address) describe_connect(refused, old_number, nowhere);
    if (detail::has_path(refused.op)) {
      refused.op.path = "name";
      refused.op.length = 0;
    }
    if (carried == payload::path_and_status) refused.op.status = &status;
    if (carried == payload::two_paths) refused.op.new_path = "other";
    if (refused.op.kind == verb::wait_fd) refused.op.flags = POLLIN;
    CHECK(done_anyhow(m, refused) == -EBADF);
  }
}

TEST_CASE("backend operations use the descriptor that has the number now", "[backend]") {
  machine m;
  std::byte buffer[8];
  int number = -1;
  for (int round = 0; round < 100; ++round) {
    auto ends = make_pipe();
    if (round > 0) REQUIRE(ends.first() == number);
    number = ends.first();
    trial read(verb::read, ends.first(), buffer, sizeof buffer);
    m.submit(read);
    m.look();
    REQUIRE(read.ends == 0);
    put(ends.second(), "x");
    REQUIRE(m.result_of(read) == 1);
  }
}

TEST_CASE("backend operations are not disturbed by a duplicate of a closed descriptor",
          "[backend]") {
  machine m;
  std::byte buffer[8];
  auto old = make_pipe();
  const fd duplicate(::dup(old.first()));
  trial first(verb::read, old.first(), buffer, sizeof buffer);
  m.submit(first);
  m.look();
  put(old.second(), "x");
  REQUIRE(m.result_of(first) == 1);
  const int number = old.first();
  old.close_first();

  auto fresh = make_pipe();
  REQUIRE(fresh.first() == number);
  trial second(verb::read, fresh.first(), buffer, sizeof buffer);
  m.submit(second);
  put(old.second(), "for the duplicate");
  m.look();
  CHECK(second.ends == 0);
  put(fresh.second(), "y");
  CHECK(m.result_of(second) == 1);
  CHECK(buffer[0] == std::byte{'y'});
}

TEST_CASE("backend recv and send with MSG_DONTWAIT return instead of waiting", "[backend]") {
  machine m;
  for (const int mode : {0, static_cast<int>(SOCK_NONBLOCK)}) {
    auto ends = make_socket_pair(mode);
    char byte = 'x';
    trial empty(verb::recv, ends.first(), &byte, 1, MSG_DONTWAIT);
    CHECK(m.perform(empty) == -EAGAIN);
    testing::fill(ends.second());
    trial full(verb::send, ends.second(), &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    CHECK(m.perform(full) == -EAGAIN);
    trial third(verb::recv, ends.first(), &byte, 1, MSG_DONTWAIT);
    CHECK(m.perform(third) == 1);
  }
}

TEST_CASE("backend recv with MSG_PEEK leaves the bytes where they are", "[backend]") {
  machine m;
  auto ends = make_socket_pair();
  char byte = '.';
  trial peek(verb::recv, ends.first(), &byte, 1, MSG_PEEK);
  m.submit(peek);
  m.look();
  put(ends.second(), "xy");
  CHECK(m.result_of(peek) == 1);
  CHECK(byte == 'x');
  CHECK(testing::take_all(ends.first()) == "xy");
}

TEST_CASE("backend read of one descriptor by two readers gives each one byte", "[backend]") {
  machine m;
  for (connected& pair : all_kinds()) {
    INFO(pair.kind);
    char bytes[2] = {'.', '.'};
    trial first(verb::read, pair.ends.first(), &bytes[0], 1);
    trial second(verb::read, pair.ends.first(), &bytes[1], 1);
    m.submit(first);
    m.submit(second);
    m.look();
    CHECK(first.ends + second.ends == 0);
    put(pair.ends.second(), "ab");
    CHECK(m.result_of(first) == 1);
    CHECK(m.result_of(second) == 1);
    CHECK(bytes[0] + bytes[1] == 'a' + 'b');
  }
}

TEST_CASE("backend read and write of one socket do not end each other", "[backend]") {
  machine m;
  auto ends = make_socket_pair();
  testing::fill(ends.first());
  char input = '.';
  char output = 'o';
  trial read(verb::read, ends.first(), &input, 1);
  trial write(verb::write, ends.first(), &output, 1);
  m.submit(read);
  m.submit(write);
  put(ends.second(), "i");
  CHECK(m.result_of(read) == 1);
  CHECK(write.ends == 0);
  testing::take_all(ends.second());
  CHECK(m.result_of(write) == 1);
  CHECK(read.ends == 1);
}

TEST_CASE("backend read and write use the current position of a regular file", "[backend]") {
  machine m;
  std::string name = std::filesystem::temp_directory_path() / "motet-backend-XXXXXX";
  const fd file(::mkostemp(name.data(), O_CLOEXEC));
  REQUIRE(file);
  ::unlink(name.c_str());
  std::string text = "hello, file";
  trial first(verb::write, file.get(), text.data(), 5);
  CHECK(done_anyhow(m, first) == 5);
  trial rest(verb::write, file.get(), text.data() + 5, 6);
  CHECK(done_anyhow(m, rest) == 6);
  REQUIRE(::lseek(file.get(), 0, SEEK_SET) == 0);
  block buffer(64);
  trial read;
  buffer.describe(read, verb::readv, file.get());
  CHECK(done_anyhow(m, read) == 11);
  CHECK(buffer.bytes.substr(0, 11) == text);
  trial end(verb::read, file.get(), buffer.bytes.data(), 1);
  CHECK(done_anyhow(m, end) == 0);
}

TEST_CASE("backend verbs make, size, describe, rename and remove files alike", "[backend]") {
  machine m;
  std::string directory = std::filesystem::temp_directory_path() / "motet-backend-XXXXXX";
  REQUIRE(::mkdtemp(directory.data()) != nullptr);
  const fd top(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto on_path = [&](verb kind, const char* path, int flags, unsigned number) {
    trial attempt(kind, top.get(), nullptr, number, flags);
    attempt.op.path = path;
    return done_anyhow(m, attempt);
  };
  CHECK(on_path(verb::mkdirat, "below", 0, 0700) == 0);
  CHECK(on_path(verb::mkdirat, "below", 0, 0700) == -EEXIST);
  const fd file(on_path(verb::openat, "below/file", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  REQUIRE(file);
  trial sized(verb::ftruncate, file.get());
  sized.op.offset = 1234;
  CHECK(done_anyhow(m, sized) == 0);
  trial synced(verb::fsync, file.get(), nullptr, 0, operation::data_only);
  CHECK(done_anyhow(m, synced) == 0);
  struct ::statx status{};
  trial described(verb::statx, top.get(), nullptr, STATX_SIZE, 0);
  described.op.path = "below/file";
  described.op.status = &status;
  CHECK(done_anyhow(m, described) == 0);
  CHECK(status.stx_size == 1234);
  trial renamed(verb::renameat, top.get(), nullptr, static_cast<unsigned>(top.get()));
  renamed.op.path = "below/file";
  renamed.op.new_path = "file";
  CHECK(done_anyhow(m, renamed) == 0);
  CHECK(on_path(verb::unlinkat, "below/file", 0, 0) == -ENOENT);
  CHECK(on_path(verb::unlinkat, "file", 0, 0) == 0);
  CHECK(on_path(verb::unlinkat, "below", AT_REMOVEDIR, 0) == 0);
  CHECK(::rmdir(directory.c_str()) == 0);
}

TEST_CASE("backend write returns EPIPE without a signal if nobody will read", "[backend]") {
  machine m;
  const counted_signal pipes(SIGPIPE);
  for (const bool waits : {false, true}) {
    for (connected& pair : all_kinds()) {
      for (const verb kind : writing_verbs(pair.socket)) {
        auto ends = pair.make();
        INFO(pair.kind << ", verb " << static_cast<int>(kind) << ", waits: " << waits);
        block text(8, 'x');
        trial write;
        text.describe(write, kind, ends.second());
        if (waits) {
          testing::fill(ends.second());
          m.submit(write);
          m.look();
          CHECK(write.ends == 0);
        }
        ends.close_first();
        if (!waits) m.submit(write);
        CHECK(m.result_of(write) == -EPIPE);
      }
    }
  }
  CHECK(signals_seen == 0);
}

TEST_CASE("backend write leaves a pending signal pending, and raises no other", "[backend]") {
  machine m;
  sigset_t pipes;
  sigset_t old_mask;
  ::sigemptyset(&pipes);
  ::sigaddset(&pipes, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipes, &old_mask);
  auto ends = make_pipe();
  ends.close_first();
  char byte = 'x';
  {
    trial write(verb::write, ends.second(), &byte, 1);
    CHECK(m.perform(write) == -EPIPE);
    CHECK_FALSE(is_pending(SIGPIPE));
  }
  ::raise(SIGPIPE);
  {
    trial write(verb::write, ends.second(), &byte, 1);
    CHECK(m.perform(write) == -EPIPE);
    CHECK(is_pending(SIGPIPE));
  }
  const timespec at_once{};
  ::sigtimedwait(&pipes, nullptr, &at_once);
  ::pthread_sigmask(SIG_SETMASK, &old_mask, nullptr);
}

TEST_CASE("backend verbs work on eventfd and timerfd as on other descriptors", "[backend]") {
  machine m;
  for (const int mode : {0, static_cast<int>(EFD_NONBLOCK)}) {
    INFO("mode " << mode);
    const fd events(::eventfd(0, EFD_CLOEXEC | mode));
    std::uint64_t value = 0;
    trial read(verb::read, events.get(), &value, sizeof value);
    m.submit(read);
    m.look();
    CHECK(read.ends == 0);
    std::uint64_t three = 3;
    trial write(verb::write, events.get(), &three, sizeof three);
    CHECK(m.perform(write) == 8);
    CHECK(m.result_of(read) == 8);
    CHECK(value == 3);

    const fd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | (mode != 0 ? TFD_NONBLOCK : 0)));
    const itimerspec soon{{0, 0}, {0, 1'000'000}};
    ::timerfd_settime(timer.get(), 0, &soon, nullptr);
    trial wait(verb::wait_fd, timer.get(), nullptr, 0, POLLIN);
    CHECK(m.perform(wait) == POLLIN);
    trial ticks(verb::read, timer.get(), &value, sizeof value);
    CHECK(m.perform(ticks) == 8);
    CHECK(value == 1);
  }
}
