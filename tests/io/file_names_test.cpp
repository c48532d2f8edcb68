// SPDX-License-Identifier: MIT
// Files by their names: made, opened, described, renamed and taken away; and files as such: their
// size and room.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
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
#include "io/scratch.hpp"
#include "sockets.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::bytes_of;
using testing::descriptor_letter;
using testing::error_of;
using testing::make_pipe;
using testing::make_socket_pair;
using testing::oops;
using testing::scratch_directory;
using testing::until_waiting;

namespace {

static_assert(noexcept(io::openat(0, "", 0, 0, std::declval<std::error_code&>())));
static_assert(noexcept(io::statx(0, "", 0, 0, std::declval<struct ::statx&>(),
                                 std::declval<std::error_code&>())));
static_assert(noexcept(io::renameat(0, "", 0, "", 0, std::declval<std::error_code&>())));
static_assert(noexcept(io::unlinkat(0, "", 0, std::declval<std::error_code&>())));
static_assert(noexcept(io::mkdirat(0, "", 0, std::declval<std::error_code&>())));
static_assert(noexcept(io::fallocate(0, 0, 0, 0, std::declval<std::error_code&>())));
static_assert(noexcept(io::ftruncate(0, 0, std::declval<std::error_code&>())));
static_assert(noexcept(io::fdatasync(0, std::declval<std::error_code&>())));

fd make_file(const scratch_directory& in, const char* name) {
  return fd(io::openat(in.get(), name, O_RDWR | O_CREAT | O_EXCL, 0644));
}

std::uint64_t size_of(const scratch_directory& in, const char* name) {
  struct ::statx found{};
  io::statx(in.get(), name, 0, STATX_SIZE, found);
  return found.stx_size;
}

template <typename F>
std::string text_of_error(F f) {
  try {
    f();
  } catch (const std::system_error& error) {
    return error.what();
  }
  return "nothing thrown";
}

}  // namespace

TEST_CASE("a file is made, described, renamed and taken away by its name", "[io][file]") {
  run([] {
    const scratch_directory in;
    io::mkdirat(in.get(), "below", 0700);
    fd file = make_file(in, "below/draft");
    CHECK((::fcntl(file.get(), F_GETFD) & FD_CLOEXEC) != 0);
    io::pwrite(file.get(), bytes_of("twelve bytes"), 0);
    io::fdatasync(file.get());
    struct ::statx found{};
    io::statx(in.get(), "below/draft", 0, STATX_BASIC_STATS, found);
    CHECK(found.stx_size == 12);
    CHECK(S_ISREG(found.stx_mode));
    CHECK((found.stx_mode & 0777) == 0644);
    io::renameat(in.get(), "below/draft", in.get(), "letter");
    CHECK_FALSE(in.has("below/draft"));
    io::statx(file.get(), "", AT_EMPTY_PATH, STATX_SIZE, found);
    CHECK(found.stx_size == 12);
    CHECK(size_of(in, "letter") == 12);
    io::unlinkat(in.get(), "letter");
    io::unlinkat(in.get(), "below", AT_REMOVEDIR);
    CHECK(std::filesystem::is_empty(in.name()));
  });
}

TEST_CASE("a path without a directory begins in the working directory, or at the root",
          "[io][file]") {
  run([] {
    const scratch_directory in;
    make_file(in, "here");
    const fd absolute(io::openat(AT_FDCWD, (in.name() + "/here").c_str(), O_RDONLY));
    CHECK(absolute);
    const fd relative(io::openat(AT_FDCWD, ".", O_RDONLY | O_DIRECTORY));
    struct stat found{};
    struct stat wanted{};
    REQUIRE(::fstat(relative.get(), &found) == 0);
    REQUIRE(::stat(".", &wanted) == 0);
    CHECK(found.st_ino == wanted.st_ino);
  });
}

TEST_CASE("what the kernel refuses names the path", "[io][file]") {
  run([] {
    const scratch_directory in;
    make_file(in, "file");
    io::mkdirat(in.get(), "full", 0700);
    make_file(in, "full/file");
    const auto open = [&](const char* path, int flags) {
      return error_of([&] { fd(io::openat(in.get(), path, flags, 0600)); });
    };
    CHECK(open("missing", O_RDONLY) == std::errc::no_such_file_or_directory);
    CHECK(open("file", O_CREAT | O_EXCL) == std::errc::file_exists);
    CHECK(open("file/below", O_RDONLY) == std::errc::not_a_directory);
    CHECK(open("", O_RDONLY) == std::errc::no_such_file_or_directory);
    CHECK(open(std::string(5000, 'x').c_str(), O_RDONLY) == std::errc::filename_too_long);
    CHECK(text_of_error([&] {
            io::openat(in.get(), "missing", O_RDONLY);
          }).starts_with("openat of \"missing\": "));
    CHECK(text_of_error([&] {
            io::renameat(in.get(), "gone", in.get(), "new");
          }).starts_with("renameat of \"gone\": "));
    CHECK(error_of([&] { io::mkdirat(in.get(), "file", 0700); }) == std::errc::file_exists);
    CHECK(error_of([&] { io::unlinkat(in.get(), "full", AT_REMOVEDIR); }) ==
          std::errc::directory_not_empty);
    CHECK(error_of([&] { io::unlinkat(in.get(), "full"); }) == std::errc::is_a_directory);
    CHECK(error_of([&] {
            io::renameat(in.get(), "file", in.get(), "full/file", RENAME_NOREPLACE);
          }) == std::errc::file_exists);
    CHECK(error_of([&] { io::openat(-1, "file", O_RDONLY); }) == std::errc::bad_file_descriptor);
    CHECK(error_of([&] { io::ftruncate(AT_FDCWD, 0); }) == std::errc::bad_file_descriptor);
  });
}

TEST_CASE("the forms with an error code say the same", "[io][file]") {
  run([] {
    const scratch_directory in;
    std::error_code error;
    CHECK(io::openat(in.get(), "missing", O_RDONLY, 0, error) == -1);
    CHECK(error == std::errc::no_such_file_or_directory);
    struct ::statx found{};
    io::statx(in.get(), "missing", 0, STATX_SIZE, found, error);
    CHECK(error == std::errc::no_such_file_or_directory);
    io::unlinkat(in.get(), "missing", 0, error);
    CHECK(error == std::errc::no_such_file_or_directory);
    io::renameat(in.get(), "missing", in.get(), "new", 0, error);
    CHECK(error == std::errc::no_such_file_or_directory);
    io::mkdirat(in.get(), "new", 0700, error);
    CHECK_FALSE(error);
    CHECK(in.has("new"));
    const fd file(io::openat(in.get(), "file", O_RDWR | O_CREAT, 0600, error));
    CHECK_FALSE(error);
    io::ftruncate(file.get(), 100, error);
    CHECK_FALSE(error);
    io::fdatasync(file.get(), error);
    CHECK_FALSE(error);
    io::ftruncate(file.get(), -1, error);
    CHECK(error == std::errc::invalid_argument);
    CHECK(size_of(in, "file") == 100);
  });
}

TEST_CASE("a file grows and shrinks", "[io][file]") {
  run([] {
    const scratch_directory in;
    const fd file = make_file(in, "file");
    io::ftruncate(file.get(), 10'000);
    CHECK(size_of(in, "file") == 10'000);
    io::ftruncate(file.get(), 3);
    CHECK(size_of(in, "file") == 3);
    std::error_code error;
    io::fallocate(file.get(), 0, 0, 20'000, error);
    if (error == std::errc::operation_not_supported) return;  // by this file system
    CHECK_FALSE(error);
    CHECK(size_of(in, "file") == 20'000);
    io::fallocate(file.get(), FALLOC_FL_KEEP_SIZE, 20'000, 20'000);
    CHECK(size_of(in, "file") == 20'000);
    CHECK(error_of([&] { io::fallocate(file.get(), 0, 0, 0); }) == std::errc::invalid_argument);
    const auto pipe = make_pipe();
    CHECK(error_of([&] { io::fallocate(pipe.second(), 0, 0, 1); }) == std::errc::invalid_seek);
    CHECK(error_of([&] { io::ftruncate(pipe.second(), 1); }) == std::errc::invalid_argument);
  });
}

TEST_CASE("several buffers are written and read at an offset", "[io][file]") {
  run([] {
    const scratch_directory in;
    const fd file = make_file(in, "file");
    std::string left = "left ";
    std::string right = "right";
    const std::array<iovec, 2> parts{iovec{left.data(), left.size()},
                                     iovec{right.data(), right.size()}};
    CHECK(io::pwritev(file.get(), parts, 7) == 10);
    CHECK(::lseek(file.get(), 0, SEEK_CUR) == 0);
    left = right = "?????";
    CHECK(io::preadv(file.get(), parts, 7) == 10);
    CHECK(left + right == "left right");
    CHECK(io::preadv(file.get(), parts, 17) == 0);
    CHECK(error_of([&] { io::preadv(file.get(), parts, -1); }) == std::errc::invalid_argument);
    const std::vector<iovec> many(1025, parts[0]);
    CHECK_THROWS_AS(io::preadv(file.get(), many, 0), std::invalid_argument);
    std::error_code error;
    CHECK(io::pwritev(file.get(), many, 0, error) == 0);
    CHECK(error == std::errc::invalid_argument);
    CHECK(io::preadv(file.get(), parts, 7, error) == 10);
    CHECK_FALSE(error);
  });
}

TEST_CASE("many fibers make and take away files of one directory", "[io][file]") {
  run([] {
    const scratch_directory in;
    const std::size_t before = testing::open_descriptors();
    {
      group all;
      for (int i = 0; i < 100; ++i) {
        all.spin([&in, i] {
          const std::string name = "file" + std::to_string(i);
          make_file(in, name.c_str());
          io::renameat(in.get(), name.c_str(), in.get(), (name + ".new").c_str());
          io::unlinkat(in.get(), (name + ".new").c_str());
        });
      }
      all.await_all();
    }
    CHECK(std::filesystem::is_empty(in.name()));
    CHECK(testing::open_descriptors() == before);
  });
}

TEST_CASE("other fibers run while a fiber waits for the disk", "[io][file]") {
  run([] {
    const scratch_directory in;
    bool others_ran = false;
    spin([&] { others_ran = true; });
    io::mkdirat(in.get(), "below", 0700);
    CHECK(others_ran);
  });
}

TEST_CASE("a fiber that is interrupted before its call changes nothing", "[io][file]") {
  run([] {
    const scratch_directory in;
    fiber_ref self = current();
    self.raise(oops());
    CHECK_THROWS_AS(io::mkdirat(in.get(), "below", 0700), oops);
    self.raise(oops());
    std::error_code error;
    io::mkdirat(in.get(), "below", 0700, error);
    CHECK(error == std::errc::operation_canceled);
    CHECK_THROWS_AS(snooze(), oops);
    CHECK_FALSE(in.has("below"));
  });
}

TEST_CASE("what is interrupted in a call has happened, or has not", "[io][file]") {
  run([] {
    const scratch_directory in;
    const std::size_t before = testing::open_descriptors();
    const int rounds = static_cast<int>(testing::scaled(2000, 100));
    for (int i = 0; i < rounds; ++i) {
      const std::string name = "file" + std::to_string(i);
      bool made = false;
      bool thrown = false;
      auto maker = spin([&] {
        try {
          make_file(in, name.c_str());
          made = true;
          snooze();
        } catch (const oops&) {
          thrown = true;
        }
      });
      for (int turns = 0; turns < i % 3; ++turns) snooze();
      maker.raise(oops());
      try {
        maker.await();
      } catch (const oops&) {
        thrown = true;  // before the fiber ran
      }
      CHECK(made == in.has(name.c_str()));
      CHECK((made || thrown));
      ::unlinkat(in.get(), name.c_str(), 0);
    }
    CHECK(testing::open_descriptors() == before);
  });
}

TEST_CASE("a file is not renamed into a directory that has got the number", "[io][file]") {
  run([] {
    const scratch_directory in;
    io::mkdirat(in.get(), "other", 0700);
    io::mkdirat(in.get(), "stranger", 0700);
    const int rounds = static_cast<int>(testing::scaled(300, 50));
    for (int i = 0; i < rounds; ++i) {
      make_file(in, "file");
      const int other = io::openat(in.get(), "other", O_RDONLY | O_DIRECTORY);
      auto renaming = spin([&] { io::renameat(in.get(), "file", other, "file"); });
      for (int turns = 0; turns < i % 3; ++turns) snooze();
      io::close(other);
      const fd stranger(io::openat(in.get(), "stranger", O_RDONLY | O_DIRECTORY));
      const auto error = error_of([&] { renaming.await(); });
      CHECK((!error || error == std::errc::bad_file_descriptor || i % 3 == 0));
      CHECK_FALSE((in.has("stranger/file") && i % 3 != 0));
      ::unlinkat(in.get(), "file", 0);
      ::unlinkat(in.get(), "other/file", 0);
      ::unlinkat(in.get(), "stranger/file", 0);
    }
  });
}

TEST_CASE("the open of a FIFO waits for its other end", "[io][file]") {
  run([] {
    const scratch_directory in;
    REQUIRE(::mkfifoat(in.get(), "fifo", 0600) == 0);
    fd reader;
    auto reading = spin([&] { reader = fd(io::openat(in.get(), "fifo", O_RDONLY)); });
    until_waiting(reading);
    CHECK_FALSE(move_on_after(5ms, [&] { reading.await(); }));
    fd writer(io::openat(in.get(), "fifo", O_WRONLY));
    reading.await();
    io::write_all(writer.get(), bytes_of("through"));
    CHECK(testing::take_all(reader.get()) == "through");
    CHECK(error_of([&] { const fd other(io::openat(in.get(), "gone", O_WRONLY | O_NONBLOCK)); }) ==
          std::errc::no_such_file_or_directory);
  });
}

TEST_CASE("an open that would wait for a lease says so, if it must not wait", "[io][file]") {
  run([] {
    const scratch_directory in;
    const fd leased = make_file(in, "file");
    auto* const before = ::signal(SIGIO, SIG_IGN);
    if (::fcntl(leased.get(), F_SETLEASE, F_WRLCK) != 0) return;  // this file system has no leases
    const auto open = [&](int directory, const std::string& path) {
      return error_of([&] { fd(io::openat(directory, path.c_str(), O_WRONLY | O_NONBLOCK)); });
    };
    CHECK(open(in.get(), "file") == std::errc::resource_unavailable_try_again);
    CHECK(open(AT_FDCWD, in.name() + "/file") == std::errc::resource_unavailable_try_again);
    ::fcntl(leased.get(), F_SETLEASE, F_UNLCK);
    ::signal(SIGIO, before);
  });
}

TEST_CASE("paths that are none are refused, absolute ones need no directory", "[io][file]") {
  run([] {
    CHECK(error_of([] { io::openat(AT_FDCWD, nullptr, O_RDONLY); }) == std::errc::bad_address);
    CHECK(error_of([] { io::unlinkat(AT_FDCWD, nullptr); }) == std::errc::bad_address);
    CHECK(error_of([] { io::renameat(AT_FDCWD, "x", AT_FDCWD, nullptr); }) ==
          std::errc::bad_address);
    std::error_code error;
    io::mkdirat(AT_FDCWD, nullptr, 0700, error);
    CHECK(error == std::errc::bad_address);
    CHECK(fd(io::openat(-1, "/dev/null", O_RDONLY)));
  });
}

TEST_CASE("a message is sent with a descriptor", "[io][sendmsg]") {
  run([] {
    auto sockets = make_socket_pair();
    const auto pipe = make_pipe();
    descriptor_letter letter(pipe.second());
    CHECK(io::sendmsg(sockets.first(), letter.message) == 1);
    const std::size_t before = testing::open_descriptors();
    CHECK(io::recvmsg(sockets.second(), letter.message) == 1);
    CHECK(testing::open_descriptors() == before + 1);
    int copy = -1;
    std::memcpy(&copy, CMSG_DATA(CMSG_FIRSTHDR(&letter.message)), sizeof copy);
    fd closed(copy);
  });
}

TEST_CASE("a sendmsg waits for room, and tells its errors", "[io][sendmsg]") {
  run([] {
    auto sockets = make_socket_pair();
    const std::size_t filled = testing::fill(sockets.first());
    char byte = 'x';
    iovec vector{&byte, 1};
    msghdr message{};
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
    std::error_code error;
    CHECK(io::sendmsg(sockets.first(), message, MSG_DONTWAIT, error) == 0);
    CHECK(error == std::errc::resource_unavailable_try_again);
    auto sending = spin([&] { return io::sendmsg(sockets.first(), message); });
    until_waiting(sending);
    CHECK(sending.raise(oops()));
    CHECK_THROWS_AS(sending.await(), oops);
    auto again = spin([&] { return io::sendmsg(sockets.first(), message); });
    until_waiting(again);
    CHECK(testing::take_all(sockets.second()).size() == filled);
    CHECK(again.await() == 1);
    CHECK(testing::take_all(sockets.second()) == "x");
    sockets.close_second();
    CHECK(error_of([&] { io::sendmsg(sockets.first(), message); }) == std::errc::broken_pipe);
    const auto pipe = make_pipe();
    CHECK(error_of([&] { io::sendmsg(pipe.second(), message); }) == std::errc::not_a_socket);
  });
}
