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

fd make_file(const scratch_directory& root, const char* name) {
  return fd(io::openat(root.get(), name, O_RDWR | O_CREAT | O_EXCL, 0644));
}

std::uint64_t size_of(const scratch_directory& root, const char* name) {
  struct ::statx status{};
  io::statx(root.get(), name, 0, STATX_SIZE, status);
  return status.stx_size;
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

TEST_CASE("io::openat(), statx(), renameat() and unlinkat() handle a file by its name",
          "[io][file]") {
  run([] {
    const scratch_directory root;
    io::mkdirat(root.get(), "below", 0700);
    fd file = make_file(root, "below/draft");
    CHECK((::fcntl(file.get(), F_GETFD) & FD_CLOEXEC) != 0);
    io::pwrite(file.get(), bytes_of("twelve bytes"), 0);
    io::fdatasync(file.get());
    struct ::statx status{};
    io::statx(root.get(), "below/draft", 0, STATX_BASIC_STATS, status);
    CHECK(status.stx_size == 12);
    CHECK(S_ISREG(status.stx_mode));
    CHECK((status.stx_mode & 0777) == 0644);
    io::renameat(root.get(), "below/draft", root.get(), "letter");
    CHECK_FALSE(root.has("below/draft"));
    io::statx(file.get(), "", AT_EMPTY_PATH, STATX_SIZE, status);
    CHECK(status.stx_size == 12);
    CHECK(size_of(root, "letter") == 12);
    io::unlinkat(root.get(), "letter");
    io::unlinkat(root.get(), "below", AT_REMOVEDIR);
    CHECK(std::filesystem::is_empty(root.name()));
  });
}

TEST_CASE("io::openat() begins in the working directory, or at the root", "[io][file]") {
  run([] {
    const scratch_directory root;
    make_file(root, "here");
    const fd absolute(io::openat(AT_FDCWD, (root.name() + "/here").c_str(), O_RDONLY));
    CHECK(absolute);
    const fd relative(io::openat(AT_FDCWD, ".", O_RDONLY | O_DIRECTORY));
    struct stat status{};
    struct stat reference{};
    REQUIRE(::fstat(relative.get(), &status) == 0);
    REQUIRE(::stat(".", &reference) == 0);
    CHECK(status.st_ino == reference.st_ino);
  });
}

TEST_CASE("io calls with a path name it in their errors", "[io][file]") {
  run([] {
    const scratch_directory root;
    make_file(root, "file");
    io::mkdirat(root.get(), "full", 0700);
    make_file(root, "full/file");
    const auto open = [&](const char* path, int flags) {
      return error_of([&] { fd(io::openat(root.get(), path, flags, 0600)); });
    };
    CHECK(open("missing", O_RDONLY) == std::errc::no_such_file_or_directory);
    CHECK(open("file", O_CREAT | O_EXCL) == std::errc::file_exists);
    CHECK(open("file/below", O_RDONLY) == std::errc::not_a_directory);
    CHECK(open("", O_RDONLY) == std::errc::no_such_file_or_directory);
    CHECK(open(std::string(5000, 'x').c_str(), O_RDONLY) == std::errc::filename_too_long);
    CHECK(text_of_error([&] {
            io::openat(root.get(), "missing", O_RDONLY);
          }).starts_with("openat of \"missing\": "));
    CHECK(text_of_error([&] {
            io::renameat(root.get(), "gone", root.get(), "new");
          }).starts_with("renameat of \"gone\": "));
    CHECK(error_of([&] { io::mkdirat(root.get(), "file", 0700); }) == std::errc::file_exists);
    CHECK(error_of([&] { io::unlinkat(root.get(), "full", AT_REMOVEDIR); }) ==
          std::errc::directory_not_empty);
    CHECK(error_of([&] { io::unlinkat(root.get(), "full"); }) == std::errc::is_a_directory);
    CHECK(error_of([&] {
            io::renameat(root.get(), "file", root.get(), "full/file", RENAME_NOREPLACE);
          }) == std::errc::file_exists);
    CHECK(error_of([&] { io::openat(-1, "file", O_RDONLY); }) == std::errc::bad_file_descriptor);
    CHECK(error_of([&] { io::ftruncate(AT_FDCWD, 0); }) == std::errc::bad_file_descriptor);
  });
}

TEST_CASE("io calls with a path have forms with an error code", "[io][file]") {
  run([] {
    const scratch_directory root;
    std::error_code error;
    CHECK(io::openat(root.get(), "missing", O_RDONLY, 0, error) == -1);
    CHECK(error == std::errc::no_such_file_or_directory);
    struct ::statx status{};
    io::statx(root.get(), "missing", 0, STATX_SIZE, status, error);
    CHECK(error == std::errc::no_such_file_or_directory);
    io::unlinkat(root.get(), "missing", 0, error);
    CHECK(error == std::errc::no_such_file_or_directory);
    io::renameat(root.get(), "missing", root.get(), "new", 0, error);
    CHECK(error == std::errc::no_such_file_or_directory);
    io::mkdirat(root.get(), "new", 0700, error);
    CHECK_FALSE(error);
    CHECK(root.has("new"));
    const fd file(io::openat(root.get(), "file", O_RDWR | O_CREAT, 0600, error));
    CHECK_FALSE(error);
    io::ftruncate(file.get(), 100, error);
    CHECK_FALSE(error);
    io::fdatasync(file.get(), error);
    CHECK_FALSE(error);
    io::ftruncate(file.get(), -1, error);
    CHECK(error == std::errc::invalid_argument);
    CHECK(size_of(root, "file") == 100);
  });
}

TEST_CASE("io::ftruncate() and fallocate() change the size of a file", "[io][file]") {
  run([] {
    const scratch_directory root;
    const fd file = make_file(root, "file");
    io::ftruncate(file.get(), 10'000);
    CHECK(size_of(root, "file") == 10'000);
    io::ftruncate(file.get(), 3);
    CHECK(size_of(root, "file") == 3);
    std::error_code error;
    io::fallocate(file.get(), 0, 0, 20'000, error);
    if (error == std::errc::operation_not_supported) return;  // by this file system
    CHECK_FALSE(error);
    CHECK(size_of(root, "file") == 20'000);
    io::fallocate(file.get(), FALLOC_FL_KEEP_SIZE, 20'000, 20'000);
    CHECK(size_of(root, "file") == 20'000);
    CHECK(error_of([&] { io::fallocate(file.get(), 0, 0, 0); }) == std::errc::invalid_argument);
    const auto pipe = make_pipe();
    CHECK(error_of([&] { io::fallocate(pipe.second(), 0, 0, 1); }) == std::errc::invalid_seek);
    CHECK(error_of([&] { io::ftruncate(pipe.second(), 1); }) == std::errc::invalid_argument);
  });
}

TEST_CASE("io::pwritev() and preadv() take several buffers at an offset", "[io][file]") {
  run([] {
    const scratch_directory root;
    const fd file = make_file(root, "file");
    std::string head = "left ";
    std::string tail = "right";
    const std::array<iovec, 2> parts{iovec{head.data(), head.size()},
                                     iovec{tail.data(), tail.size()}};
    CHECK(io::pwritev(file.get(), parts, 7) == 10);
    CHECK(::lseek(file.get(), 0, SEEK_CUR) == 0);
    head = tail = "?????";
    CHECK(io::preadv(file.get(), parts, 7) == 10);
    CHECK(head + tail == "left right");
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

TEST_CASE("io::openat(), renameat() and unlinkat() serve many fibers in one directory",
          "[io][file]") {
  run([] {
    const scratch_directory root;
    const std::size_t descriptors = testing::open_descriptors();
    {
      group workers;
      for (int i = 0; i < 100; ++i) {
        workers.spin([&root, i] {
          const std::string name = "file" + std::to_string(i);
          make_file(root, name.c_str());
          io::renameat(root.get(), name.c_str(), root.get(), (name + ".new").c_str());
          io::unlinkat(root.get(), (name + ".new").c_str());
        });
      }
      workers.await_all();
    }
    CHECK(std::filesystem::is_empty(root.name()));
    CHECK(testing::open_descriptors() == descriptors);
  });
}

TEST_CASE("io::mkdirat() lets other fibers run while it waits for the disk", "[io][file]") {
  run([] {
    const scratch_directory root;
    bool others_ran = false;
    spin([&] { others_ran = true; });
    io::mkdirat(root.get(), "below", 0700);
    CHECK(others_ran);
  });
}

TEST_CASE("io::mkdirat() does nothing if it is interrupted before the call", "[io][file]") {
  run([] {
    const scratch_directory root;
    fiber_ref self = current();
    self.raise(oops());
    CHECK_THROWS_AS(io::mkdirat(root.get(), "below", 0700), oops);
    self.raise(oops());
    std::error_code error;
    io::mkdirat(root.get(), "below", 0700, error);
    CHECK(error == std::errc::operation_canceled);
    CHECK_THROWS_AS(snooze(), oops);
    CHECK_FALSE(root.has("below"));
  });
}

TEST_CASE("io::openat() that is interrupted has happened, or has not", "[io][file]") {
  run([] {
    const scratch_directory root;
    const std::size_t descriptors = testing::open_descriptors();
    const int rounds = static_cast<int>(testing::scaled(2000, 100));
    for (int i = 0; i < rounds; ++i) {
      const std::string name = "file" + std::to_string(i);
      bool made = false;
      bool thrown = false;
      auto maker = spin([&] {
        try {
          make_file(root, name.c_str());
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
      CHECK(made == root.has(name.c_str()));
      CHECK((made || thrown));
      ::unlinkat(root.get(), name.c_str(), 0);
    }
    CHECK(testing::open_descriptors() == descriptors);
  });
}

TEST_CASE("io::renameat() uses no directory that has got the number of a closed one",
          "[io][file]") {
  run([] {
    const scratch_directory root;
    io::mkdirat(root.get(), "other", 0700);
    io::mkdirat(root.get(), "stranger", 0700);
    const int rounds = static_cast<int>(testing::scaled(300, 50));
    for (int i = 0; i < rounds; ++i) {
      make_file(root, "file");
      const int target = io::openat(root.get(), "other", O_RDONLY | O_DIRECTORY);
      auto renamer = spin([&] { io::renameat(root.get(), "file", target, "file"); });
      for (int turns = 0; turns < i % 3; ++turns) snooze();
      io::close(target);
      const fd stranger(io::openat(root.get(), "stranger", O_RDONLY | O_DIRECTORY));
      const auto error = error_of([&] { renamer.await(); });
      CHECK((!error || error == std::errc::bad_file_descriptor || i % 3 == 0));
      CHECK_FALSE((root.has("stranger/file") && i % 3 != 0));
      ::unlinkat(root.get(), "file", 0);
      ::unlinkat(root.get(), "other/file", 0);
      ::unlinkat(root.get(), "stranger/file", 0);
    }
  });
}

TEST_CASE("io::openat() of a FIFO waits for its other end", "[io][file]") {
  run([] {
    const scratch_directory root;
    REQUIRE(::mkfifoat(root.get(), "fifo", 0600) == 0);
    fd reader;
    auto opener = spin([&] { reader = fd(io::openat(root.get(), "fifo", O_RDONLY)); });
    until_waiting(opener);
    CHECK_FALSE(move_on_after(5ms, [&] { opener.await(); }));
    fd writer(io::openat(root.get(), "fifo", O_WRONLY));
    opener.await();
    io::write_all(writer.get(), bytes_of("through"));
    CHECK(testing::take_all(reader.get()) == "through");
    CHECK(error_of([&] { const fd fifo(io::openat(root.get(), "gone", O_WRONLY | O_NONBLOCK)); }) ==
          std::errc::no_such_file_or_directory);
  });
}

TEST_CASE("io::openat() with O_NONBLOCK fails instead of waiting for a lease", "[io][file]") {
  run([] {
    const scratch_directory root;
    const fd leased = make_file(root, "file");
    auto* const handler = ::signal(SIGIO, SIG_IGN);
    if (::fcntl(leased.get(), F_SETLEASE, F_WRLCK) != 0) return;  // this file system has no leases
    const auto open = [&](int directory, const std::string& path) {
      return error_of([&] { fd(io::openat(directory, path.c_str(), O_WRONLY | O_NONBLOCK)); });
    };
    CHECK(open(root.get(), "file") == std::errc::resource_unavailable_try_again);
    CHECK(open(AT_FDCWD, root.name() + "/file") == std::errc::resource_unavailable_try_again);
    ::fcntl(leased.get(), F_SETLEASE, F_UNLCK);
    ::signal(SIGIO, handler);
  });
}

TEST_CASE("io calls reject a null path, and need no directory for an absolute one", "[io][file]") {
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

TEST_CASE("io::sendmsg() passes a descriptor", "[io][sendmsg]") {
  run([] {
    auto sockets = make_socket_pair();
    const auto pipe = make_pipe();
    descriptor_letter letter(pipe.second());
    CHECK(io::sendmsg(sockets.first(), letter.message) == 1);
    const std::size_t descriptors = testing::open_descriptors();
    CHECK(io::recvmsg(sockets.second(), letter.message) == 1);
    CHECK(testing::open_descriptors() == descriptors + 1);
    int copy = -1;
    std::memcpy(&copy, CMSG_DATA(CMSG_FIRSTHDR(&letter.message)), sizeof copy);
    fd owner(copy);
  });
}

TEST_CASE("io::sendmsg() waits for room, and throws its errors", "[io][sendmsg]") {
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
    auto sender = spin([&] { return io::sendmsg(sockets.first(), message); });
    until_waiting(sender);
    CHECK(sender.raise(oops()));
    CHECK_THROWS_AS(sender.await(), oops);
    auto second_sender = spin([&] { return io::sendmsg(sockets.first(), message); });
    until_waiting(second_sender);
    CHECK(testing::take_all(sockets.second()).size() == filled);
    CHECK(second_sender.await() == 1);
    CHECK(testing::take_all(sockets.second()) == "x");
    sockets.close_second();
    CHECK(error_of([&] { io::sendmsg(sockets.first(), message); }) == std::errc::broken_pipe);
    const auto pipe = make_pipe();
    CHECK(error_of([&] { io::sendmsg(pipe.second(), message); }) == std::errc::not_a_socket);
  });
}
