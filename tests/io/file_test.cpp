// SPDX-License-Identifier: MIT
// The type `file`: read and written at its position and at offsets, appended to, sized and closed.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <motet/motet.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "io/scratch.hpp"
#include "sockets.hpp"
#include "support.hpp"

using namespace motet;
using testing::bad_descriptor;
using testing::bytes_of;
using testing::error_of;
using testing::oops;
using testing::scratch_name;

namespace {

static_assert(std::is_nothrow_move_constructible_v<file>);
static_assert(std::is_nothrow_move_assignable_v<file>);
static_assert(!std::is_copy_constructible_v<file>);

constexpr int fresh = O_RDWR | O_CREAT | O_EXCL;

std::string text_at(file& source, std::size_t size, off_t offset) {
  std::string text(size, '\0');
  text.resize(source.read_at(std::as_writable_bytes(std::span(text)), offset));
  return text;
}

std::string read_exactly(file& source, std::size_t size) {
  std::string text(size, '\0');
  source.read_exactly(std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace

TEST_CASE("file::write_all() and read() work from the beginning of the file", "[file]") {
  run([] {
    const scratch_name name;
    file letter = file::open(name, fresh, 0600);
    letter.write_all("hello, ");
    letter.write_all("file");
    CHECK(letter.size() == 11);
    CHECK(letter.seek(0) == 0);
    CHECK(read_exactly(letter, 5) == "hello");
    CHECK(letter.seek(0, SEEK_CUR) == 5);
    std::array<std::byte, 64> buffer{};
    CHECK(letter.read(buffer) == 6);
    CHECK(letter.read(buffer) == 0);
    letter.sync_data();
    letter.close();
    CHECK_FALSE(letter);
    file reopened_file = file::open(name);
    CHECK(text_at(reopened_file, 100, 7) == "file");
    CHECK(error_of([&] { reopened_file.write_all("no"); }) == bad_descriptor);
  });
}

TEST_CASE("file::read_exactly() says how much there was", "[file]") {
  run([] {
    const scratch_name name;
    file half = file::open(name, fresh);
    half.write_all("12345");
    half.seek(0);
    std::array<std::byte, 8> buffer{};
    try {
      half.read_exactly(buffer);
      FAIL("nothing thrown");
    } catch (const unexpected_eof& end) {
      CHECK(end.got() == 5);
      CHECK(std::string(end.what()) == "end of stream after 5 of 8 bytes");
    }
    CHECK(testing::text_of(std::span(buffer).first(5)) == "12345");
    half.seek(2);
    std::error_code error = std::make_error_code(bad_descriptor);
    CHECK(half.read_exactly(buffer, error) == 3);
    CHECK_FALSE(error);
    half.read_exactly({});
  });
}

TEST_CASE("file::write_all() says how much it wrote before the disk was full", "[file]") {
  run([] {
    file full = file::open("/dev/full", O_RDWR);
    CHECK(error_of([&] { full.write_all("x"); }) == std::errc::no_space_on_device);
    std::error_code error;
    CHECK(full.write_all(bytes_of("x"), error) == 0);
    CHECK(error == std::errc::no_space_on_device);
    const scratch_name name;
    file small = file::open(name, fresh);
    rlimit old_limit{};
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &old_limit) == 0);
    auto* const handler = ::signal(SIGXFSZ, SIG_IGN);
    const rlimit tight{1000, old_limit.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &tight) == 0);
    const std::vector<std::byte> large(1500);
    const std::size_t size = small.write_all(large, error);
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &old_limit) == 0);
    ::signal(SIGXFSZ, handler);
    CHECK(size == 1000);
    CHECK(error == std::errc::file_too_large);
    CHECK(small.size() == 1000);
  });
}

TEST_CASE("file::append() of many fibers keeps each piece whole", "[file]") {
  run([] {
    const scratch_name name;
    file log = file::open(name, fresh);
    log.write_all("at the beginning");
    log.seek(3);
    file second = file::open(name, O_WRONLY);
    constexpr int fibers = 50;
    const std::string line(99, '.');
    {
      group tasks;
      for (int i = 0; i < fibers; ++i) {
        tasks.spin(
            [&, i] { (i % 2 == 0 ? log : second).append(line + static_cast<char>('A' + i % 26)); });
      }
      tasks.await_all();
    }
    CHECK(log.seek(0, SEEK_CUR) == 3);
    CHECK(log.size() == 16 + 100 * fibers);
    for (int i = 0; i < fibers; ++i) {
      const std::string piece = text_at(log, 100, 16 + i * 100);
      CHECK(piece.substr(0, 99) == line);
      CHECK(std::isupper(static_cast<unsigned char>(piece.back())) != 0);
    }
    CHECK(error_of([&] { file::open(name).append("x"); }) == bad_descriptor);
  });
}

TEST_CASE("file::resize() changes the size", "[file]") {
  run([] {
    const scratch_name name;
    file sized = file::open(name, fresh);
    sized.resize(1'000'000);
    CHECK(sized.size() == 1'000'000);
    CHECK(text_at(sized, 1, 999'999) == std::string(1, '\0'));
    sized.resize(0);
    sized.sync();
    CHECK(sized.size() == 0);
    CHECK(error_of([&] { sized.resize(-1); }) == std::errc::invalid_argument);
    CHECK(error_of([&] { sized.seek(-1); }) == std::errc::invalid_argument);
  });
}

TEST_CASE("file::open() throws an error with the name", "[file]") {
  run([] {
    const scratch_name name;
    CHECK(error_of([&] { file::open(name); }) == std::errc::no_such_file_or_directory);
    CHECK(error_of([&] { file::open("/", O_WRONLY); }) == std::errc::is_a_directory);
    using namespace std::string_view_literals;
    CHECK_THROWS_AS(file::open("with\0NUL"sv), std::invalid_argument);
    std::error_code error;
    CHECK_FALSE(file::open(name, O_RDONLY, 0, error));
    CHECK(error == std::errc::no_such_file_or_directory);
    CHECK_FALSE(file::open("with\0NUL"sv, O_RDONLY, 0, error));
    CHECK(error == std::errc::invalid_argument);
    CHECK(file::open("/dev/null", O_RDONLY, 0, error));
    CHECK_FALSE(error);
  });
}

TEST_CASE("file::read_at() and write_at() serve many fibers at once", "[file]") {
  run([] {
    const scratch_name name;
    file numbers = file::open(name, fresh);
    const auto bytes_of_one = [](int& number) {
      return std::as_writable_bytes(std::span(&number, 1));
    };
    for (int number = 0; number < 64; ++number) {
      numbers.write_at(bytes_of_one(number), off_t{number} * 1024);
    }
    group tasks;
    for (int first = 0; first < 32; ++first) {
      tasks.spin([&, first] {
        for (int number = first; number < 64; number += 32) {
          int value = -1;
          CHECK(numbers.read_at(bytes_of_one(value), off_t{number} * 1024) == sizeof value);
          CHECK(value == number);
          value = -number;
          CHECK(numbers.write_at(bytes_of_one(value), off_t{number} * 1024) == sizeof value);
        }
      });
    }
    tasks.await_all();
    for (int number = 0; number < 64; ++number) {
      int value = 0;
      std::error_code error;
      CHECK(numbers.read_at(bytes_of_one(value), off_t{number} * 1024, error) == sizeof value);
      CHECK(value == -number);
    }
  });
}

TEST_CASE("file::read_at() ends by a close of the file and by an exception", "[file]") {
  run([] {
    file zeros = file::open("/dev/zero");
    const scratch_name name;
    file short_one = file::open(name, fresh);
    short_one.write_all("abc");
    std::array<std::byte, 4> buffer{};
    auto busy = spin([] {
      for (;;) snooze();
    });
    CHECK(short_one.read_at(buffer, 0) == 3);
    CHECK(error_of([&] { short_one.read_at(buffer, -1); }) == std::errc::invalid_argument);
    CHECK(zeros.read_at(buffer, 1) == buffer.size());
    auto reader = spin([&] {
      for (;;) {
        short_one.read_at(buffer, 0);
        snooze();
      }
    });
    snooze();
    CHECK(reader.raise(oops()));
    CHECK_THROWS_AS(reader.await(), oops);
    auto last_reader = spin([&] { return error_of([&] { short_one.read_at(buffer, 0); }); });
    snooze();
    short_one.close();
    const std::error_code error = last_reader.await();
    CHECK((!error || error == bad_descriptor));
    CHECK(error_of([&] { short_one.read_at(buffer, 0); }) == bad_descriptor);
    busy.terminate();
  });
}

TEST_CASE("file::read_at() of a pipe throws, however many fibers there are", "[file]") {
  run([] {
    auto ends = testing::make_pipe();
    REQUIRE(::write(ends.second(), "abc", 3) == 3);
    file pipe_file{fd(::dup(ends.first()))};
    std::array<std::byte, 4> buffer{};
    auto busy = spin([] {
      for (;;) snooze();
    });
    CHECK(error_of([&] { pipe_file.read_at(buffer, 0); }) == std::errc::invalid_seek);
    CHECK(io::read(ends.first(), buffer) == 3);
    busy.terminate();
  });
}

TEST_CASE("file calls throw bad_file_descriptor if the file is not open", "[file]") {
  run([] {
    file closed_file;
    std::array<std::byte, 4> buffer{};
    CHECK_FALSE(closed_file);
    CHECK(error_of([&] { closed_file.read(buffer); }) == bad_descriptor);
    CHECK(error_of([&] { closed_file.write_all("x"); }) == bad_descriptor);
    CHECK(error_of([&] { closed_file.append("x"); }) == bad_descriptor);
    CHECK(error_of([&] { closed_file.size(); }) == bad_descriptor);
    CHECK(error_of([&] { closed_file.resize(0); }) == bad_descriptor);
    CHECK(error_of([&] { closed_file.seek(0); }) == bad_descriptor);
    CHECK(error_of([&] { closed_file.sync(); }) == bad_descriptor);
    CHECK(error_of([&] { closed_file.close(); }) == bad_descriptor);
    file null = file::open("/dev/null");
    const int number = null.native_handle();
    file target = std::move(null);
    CHECK(target.native_handle() == number);
    fd descriptor = target.release();
    CHECK(descriptor.get() == number);
    CHECK_FALSE(target);
    file last_file(std::move(descriptor));
    last_file = file::open("/dev/null");
    CHECK(last_file);
  });
}

TEST_CASE("file is closed when an exception ends its fiber, and append() breaks no piece",
          "[file]") {
  run([] {
    const std::size_t descriptors = testing::open_descriptors();
    const scratch_name name;
    int pieces = 0;
    auto writer = spin([&] {
      file large = file::open(name, fresh);
      for (;; ++pieces) large.append("0123456789");
    });
    while (pieces < 20) snooze();
    writer.raise(oops());
    CHECK_THROWS_AS(writer.await(), oops);
    CHECK(testing::open_descriptors() == descriptors);
    CHECK(file::open(name).size() >= 10 * pieces);
    CHECK(file::open(name).size() <= 10 * (pieces + 1));
  });
}
