// SPDX-License-Identifier: MIT
// The disks of simulated hosts: what a power failure leaves, and errors.
#include <fcntl.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <motet/motet.hpp>
#include <motet/testing.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "catch.hpp"
#include "testing/simulations.hpp"

namespace {

using namespace motet;
using namespace std::chrono_literals;
using motet::testing::host;
using motet::testing::outcome;
using motet::testing::world;
using ::testing::passes;
using ::testing::require;

constexpr int fresh = O_RDWR | O_CREAT | O_CLOEXEC;

/// Returns: "-" if there is no such file.
std::string contents(const char* path) {
  std::error_code error;
  file source = file::open(path, O_RDONLY | O_CLOEXEC, 0, error);
  if (error) return "-";
  std::string text(static_cast<std::size_t>(source.size()), '\0');
  const std::size_t size = source.read_at(std::as_writable_bytes(std::span(text)), 0);
  text.resize(size);
  return text;
}

void sync_root() {
  const fd root(io::openat(AT_FDCWD, "/", O_RDONLY | O_DIRECTORY));
  io::fsync(root.get());
}

/// Runs `before` on a host until it is crashed, and then `after`.
void over_a_crash(world& in, const std::function<void()>& before,
                  const std::function<void()>& after) {
  bool is_second = false;
  host computer = in.add("computer", [&] {
    if (is_second) return after();
    before();
    sleep();
  });
  sleep_for(1s);
  in.crash(computer);
  is_second = true;
  in.restart(computer);
  sleep_for(1s);
  require(!computer.running(), "the second life has ended");
}

}  // namespace

TEST_CASE("disk: what is safe survives every crash") {
  passes([](world& in) {
    over_a_crash(
        in,
        [] {
          file target = file::open("data/../log", fresh, 0640);
          target.write_all("first");
          target.sync();
          sync_root();
          target.write_all("second");
        },
        [] { require(contents("/log").starts_with("first"), "the first write is there"); });
  });
}

TEST_CASE("disk: without an fsync a write is kept, lost or torn between sectors") {
  std::set<std::string> sizes;
  std::set<std::size_t> torn;
  passes(
      [&](world& in) {
        over_a_crash(
            in,
            [] {
              file target = file::open("log", fresh, 0640);
              target.sync();
              sync_root();
              target.write_all(std::string(2'000, 'x'));
            },
            [&] {
              const std::string left = contents("log");
              require(left == std::string(left.size(), 'x'), "what there is was written");
              if (left.size() == 2'000 || left.empty()) {
                sizes.insert(left.empty() ? "lost" : "kept");
              } else {
                torn.insert(left.size());
              }
            });
      },
      200);
  CHECK(sizes == std::set<std::string>{"kept", "lost"});
  CHECK(torn == std::set<std::size_t>{512, 1'024, 1'536});
}

TEST_CASE("disk: a name needs an fsync of its directory") {
  std::set<std::string> unsafe;
  passes([&](world& in) {
    over_a_crash(
        in,
        [] {
          file first = file::open("unsafe", fresh, 0640);
          first.write_all("x");
          first.sync();
          io::mkdirat(AT_FDCWD, "d", 0750);
          sync_root();
          file second = file::open("d/new", fresh, 0640);
          second.write_all("x");
          second.sync();
        },
        [&] {
          require(contents("unsafe") == "x", "synchronised afterwards");
          unsafe.insert(contents("d/new"));
        });
  });
  CHECK(unsafe == std::set<std::string>{"-", "x"});
}

TEST_CASE("disk: a file is replaced as a whole by a renaming") {
  std::set<std::string> found;
  passes([&](world& in) {
    over_a_crash(
        in,
        [] {
          file first = file::open("state", fresh, 0640);
          first.write_all("old");
          first.sync();
          sync_root();
          file second = file::open("state.new", fresh, 0640);
          second.write_all("new");
          second.sync();
          io::renameat(AT_FDCWD, "state.new", AT_FDCWD, "state");
        },
        [&] {
          found.insert(contents("state"));
          require(contents("state") != "-", "one of them is there");
        });
  });
  CHECK(found == std::set<std::string>{"old", "new"});
}

TEST_CASE("disk: the death of a process loses no write") {
  passes([](world& in) {
    over_a_crash(
        in, [] { file::open("log", fresh, 0640).write_all("x"); },
        [] {
          const std::string left = contents("log");
          require(left == "x" || left == "-" || left.empty(), "kept, or lost with the power");
        });
  });
  passes([](world& in) {  // a program that ends by itself
    std::string left;
    bool is_second = false;
    host computer = in.add("computer", [&] {
      if (is_second) {
        left = contents("log");
      } else {
        file::open("log", fresh, 0640).write_all("x");
      }
    });
    sleep_for(1s);
    is_second = true;
    in.restart(computer);
    sleep_for(1s);
    require(left == "x", "the system has not crashed");
  });
}

TEST_CASE("disk: each host has its own, and the function under test has the real one") {
  passes([](world& in) {
    const host first = in.add("first", [] { file::open("/name", fresh, 0640).write_all("1"); });
    const host second = in.add("second", [] { require(contents("/name") == "-", "no such file"); });
    sleep_for(1s);
    require(contents("/name") == "-", "not on the real disk");
    require(contents("/proc/self/comm") != "-", "which is there");
  });
}

TEST_CASE("disk: it can be full") {
  passes([](world& in) {
    in.disk().capacity = 1'000;
    const host computer = in.add("computer", [] {
      file target = file::open("log", fresh, 0640);
      std::error_code error;
      target.write_all(std::as_bytes(std::span(std::string_view("0123456789"))));
      const std::string many(2'000, 'x');
      require(target.write(std::as_bytes(std::span(many)), error) == 990 && !error, "a part");
      require(target.write(std::as_bytes(std::span(many)), error) == 0, "nothing");
      require(error == std::errc::no_space_on_device, "the reason");
      target.resize(500);
      target.append(std::string(100, 'y'));
      require(target.size() == 600, "there is room again");
    });
    sleep_for(1s);
  });
}

TEST_CASE("disk: after a failed fsync the next one succeeds, and yet bytes are lost") {
  std::set<std::string> found;
  passes(
      [&](world& in) {
        bool has_failed = false;
        over_a_crash(
            in,
            [&] {
              file target = file::open("log", fresh, 0640);
              sync_root();
              target.write_all("x");
              in.disk().errors = 1;
              std::error_code error;
              io::fsync(target.native_handle(), error);
              require(error == std::errc::io_error, "it fails");
              in.disk().errors = 0;
              target.sync();
              has_failed = true;
              require(contents("log") == "x", "programs still see them");
            },
            [&] {
              require(has_failed, "the first life has come so far");
              found.insert(contents("log"));
            });
      },
      100);
  CHECK(found == std::set<std::string>{"", "x"});
}

TEST_CASE("disk: names, sizes and positions are those of files") {
  passes([](world& in) {
    const host computer = in.add("computer", [] {
      io::mkdirat(AT_FDCWD, "/a", 0750);
      io::mkdirat(AT_FDCWD, "/a/b", 0750);
      file target = file::open("/a/b/c", fresh, 0640);
      target.write_all("0123456789");
      require(target.seek(3, SEEK_SET) == 3, "a position");
      std::array<std::byte, 2> two;
      target.read_exactly(two);
      require(two[0] == std::byte('3') && two[1] == std::byte('4'), "read there");
      target.write_at(std::as_bytes(std::span(std::string_view("ab"))), 8);
      require(contents("/a/b/c") == "01234567ab", "written there");
      io::renameat(AT_FDCWD, "/a/b", AT_FDCWD, "/d");
      require(contents("/d/c") == "01234567ab", "a directory moves with its files");
      std::set<std::string> names;
      for (const directory_entry& each : directory("/")) names.insert(std::string(each.name));
      require(names == std::set<std::string>{"a", "d"}, "its names");
      io::unlinkat(AT_FDCWD, "/d/c", 0);
      require(contents("/d/c") == "-", "it is gone");
      const fd folder(io::openat(AT_FDCWD, "/d", O_RDONLY | O_DIRECTORY));
      file other = file(fd(io::openat(folder.get(), "e", fresh, 0640)));
      require(contents("/d/e").empty(), "relative to a directory");
    });
    sleep_for(1s);
    require(!computer.running(), "it has ended");
  });
}

TEST_CASE("disk: a crashed host writes nothing more, and a file left open is reported") {
  passes([](world& in) {
    bool is_second = false;
    host computer = in.add("computer", [&] {
      if (is_second) {
        require(contents("log") != "farewell", "nothing is written while it unwinds");
        return;
      }
      struct farewell {
        ~farewell() {
          std::error_code error;
          file target = file::open("log", fresh, 0640, error);
          if (!error)
            target.write_all(std::as_bytes(std::span(std::string_view("farewell"))), error);
        }
      } guard;
      sleep();
    });
    sleep_for(1s);
    in.crash(computer);
    is_second = true;
    in.restart(computer);
    sleep_for(1s);
  });
  static std::optional<file> leaked;
  const outcome result = motet::testing::run({}, [](world& in) {
    const host computer = in.add("computer", [] { leaked = file::open("log", fresh, 0640); });
    sleep_for(1s);
  });
  leaked.reset();
  CHECK(result.failure.starts_with("the host computer left a file open, made by the fiber of "));
}

TEST_CASE("disk: an fsync is for the writes before it") {
  std::set<std::string> found;
  passes(
      [&](world& in) {
        over_a_crash(
            in,
            [] {
              file target = file::open("log", fresh, 0640);
              sync_root();
              target.write_all("first");
              const fiber<void> late = spin([&] { target.write_all("second"); });
              target.sync();
              sleep();
            },
            [&] { found.insert(contents("log")); });
      },
      200);
  CHECK(found.count("first") == 1);
  CHECK(found.count("firstsecond") == 1);
  CHECK(found.count("") == 0);
}

TEST_CASE("disk: writes to a file opened with O_DSYNC are safe, and empty ones change nothing") {
  passes([](world& in) {
    over_a_crash(
        in,
        [] {
          file target = file::open("log", fresh | O_DSYNC, 0600);
          sync_root();
          require(target.write_at({}, 100) == 0, "nothing");
          target.append("safe");
        },
        [] {
          require(contents("log") == "safe", "as it was written");
          struct ::statx status{};
          io::statx(AT_FDCWD, "log", 0, STATX_MODE, status);
          require((status.stx_mode & 0777) == 0600, "with its permissions");
        });
  });
}

TEST_CASE("disk: names of a renamed directory are safe after its fsync, whatever it is called") {
  passes([](world& in) {
    over_a_crash(
        in,
        [] {
          io::mkdirat(AT_FDCWD, "/a", 0750);
          sync_root();
          file target = file::open("/a/f", fresh, 0640);
          target.write_all("x");
          target.sync();
          io::renameat(AT_FDCWD, "/a", AT_FDCWD, "/b");
          const fd folder(io::openat(AT_FDCWD, "/b", O_RDONLY | O_DIRECTORY));
          io::fsync(folder.get());
        },
        [] {
          require(contents("/a/f") == "x" || contents("/b/f") == "x", "it is in one of them");
        });
  });
}

TEST_CASE("disk: what is no path, no directory or no file is refused as the kernel does") {
  passes(
      [](world& in) {
        const host computer = in.add("computer", [] {
          const auto error_of = [](const std::function<void()>& call) {
            try {
              call();
            } catch (const std::system_error& error) {
              return error.code().value();
            }
            return 0;
          };
          file target = file::open("f", fresh, 0640);
          const int number = target.native_handle();
          require(error_of([] { io::openat(AT_FDCWD, "", O_RDONLY); }) == ENOENT, "no path");
          require(error_of([] { io::openat(77, "x", fresh, 0640); }) == EBADF, "not open");
          require(error_of([=] { io::openat(number, "x", fresh, 0640); }) == ENOTDIR, "a file");
          require(error_of([] { io::unlinkat(AT_FDCWD, "/", AT_REMOVEDIR); }) == EBUSY, "the root");
          std::array<std::byte, 1> one{};
          require(error_of([&] { io::recv(number, one); }) == ENOTSOCK, "no socket");
          file copy = file::open("copy", fresh, 0640);
          target.write_all("text");
          target.seek(0, SEEK_SET);
          motet::copy(target, copy);
          copy.sync();
          require(contents("copy") == "text", "a copy by read and write");
        });
        sleep_for(1s);
        require(!computer.running(), "it has ended");
      },
      4);
}

TEST_CASE("disk: the names in a directory come in order") {
  passes(
      [](world& in) {
        const host computer = in.add("computer", [] {
          for (const char* name : {"c", "a", "b"}) file::open(name, fresh, 0640).close();
          std::string names;
          for (const directory_entry& each : directory("/")) names += each.name;
          require(names == "abc", "in order");
        });
        sleep_for(1s);
        require(!computer.running(), "it has ended");
      },
      4);
}
