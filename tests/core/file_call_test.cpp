// SPDX-License-Identifier: MIT
// Files: read and written at once if that can be, by another thread if the disk must be asked.
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <motet/motet.hpp>
#include <motet/threads/offload.hpp>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "platform/workers.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::count_workers;
using testing::limited_to;
using testing::until_no_worker_is_left;

namespace {

/// A file without a name, of `size` bytes that tell where they are.
class temporary_file {
 public:
  explicit temporary_file(std::size_t size) : content_(size, '.') {
    std::string name = std::filesystem::temp_directory_path() / "motet-offload-XXXXXX";
    file_ = fd(::mkostemp(name.data(), O_CLOEXEC));
    REQUIRE(file_);
    ::unlink(name.c_str());
    for (std::size_t i = 0; i < size; ++i) content_[i] = static_cast<char>('a' + i % 23);
    REQUIRE(::write(get(), content_.data(), size) == static_cast<ssize_t>(size));
    rewind();
  }

  int get() const { return file_.get(); }
  const std::string& content() const { return content_; }
  off_t position() const { return ::lseek(get(), 0, SEEK_CUR); }
  void rewind() const { ::lseek(get(), 0, SEEK_SET); }
  /// From here on the disk must be asked, if the kernel can do that.
  void drop_from_memory() const {
    std::this_thread::sleep_for(2ms);
    ::fsync(get());
    ::posix_fadvise(get(), 0, 0, POSIX_FADV_DONTNEED);
  }
  /// Returns: whether the kernel can read the file without a wait at all; before Linux 6.6 it
  ///          cannot on tmpfs.
  bool reads_at_once() const {
    char byte = 0;
    const iovec buffer{&byte, 1};
    return ::preadv2(get(), &buffer, 1, 0, RWF_NOWAIT) == 1;
  }
  /// Returns: whether the disk must be asked now; which may have it asked.
  bool reads_block() const {
    char byte = 0;
    const iovec buffer{&byte, 1};
    return ::preadv2(get(), &buffer, 1, 0, RWF_NOWAIT) < 0 && errno == EAGAIN;
  }
  /// Returns: whether the kernel cannot tell if a write would block.
  bool writes_block() const {
    const iovec buffer{const_cast<char*>(content_.data()), 1};
    return ::pwritev2(get(), &buffer, 1, 0, RWF_NOWAIT) < 0 &&
           (errno == EOPNOTSUPP || errno == EAGAIN);
  }
  void close() { file_.close(); }

 private:
  std::string content_;
  fd file_;
};

/// The one thread there may be is in a job until this ends.
class busy_worker {
 public:
  busy_worker() {
    offloading_.spin(
        [this] { detail::offload_to(detail::offload_pool::own, [this] { open_.wait(false); }); });
    snooze();
  }
  busy_worker(const busy_worker&) = delete;
  busy_worker& operator=(const busy_worker&) = delete;
  ~busy_worker() { release(); }
  void release() {
    open_ = true;
    open_.notify_all();
  }

 private:
  std::atomic<bool> open_{false};
  group offloading_;
};

constexpr std::size_t block = 64 << 10;

/// Reads it in pieces of two buffers.
std::string read_all(int file) {
  std::string text;
  std::array<std::byte, 5'000> first{};
  std::array<std::byte, 3'000> second{};
  const std::array buffers{iovec{first.data(), first.size()}, iovec{second.data(), second.size()}};
  while (const std::size_t size = io::readv(file, buffers)) {
    text += testing::text_of(std::span(first).first(std::min(size, first.size())));
    if (size > first.size()) text += testing::text_of(std::span(second).first(size - first.size()));
  }
  return text;
}

}  // namespace

TEST_CASE("file_call reads cached data without another thread", "[offload][file]") {
  run([] {
    const temporary_file file(block);
    until_no_worker_is_left();
    std::vector<std::byte> buffer(block);
    CHECK(io::read(file.get(), buffer) == block);
    CHECK(testing::text_of(buffer) == file.content());
    CHECK(io::read(file.get(), buffer) == 0);
    CHECK(count_workers() == (file.reads_at_once() ? 0 : 1));
  });
}

TEST_CASE("file_call reads from disk on another thread", "[offload][file]") {
  run([] {
    // What was just written may be kept for some time yet.
    constexpr int attempts = 200;
    const temporary_file probe(block);
    bool can_be_dropped = false;
    for (int attempt = 0; attempt < attempts && !can_be_dropped; ++attempt) {
      probe.drop_from_memory();
      can_be_dropped = probe.reads_block();
    }
    const temporary_file file(block);
    until_no_worker_is_left();
    bool by_another = false;
    for (int attempt = 0; attempt < attempts && !by_another; ++attempt) {
      file.rewind();
      file.drop_from_memory();
      CHECK(read_all(file.get()) == file.content());
      by_another = count_workers() > 0;
    }
    if (can_be_dropped) CHECK(by_another);
  });
}

TEST_CASE("file_call writes at a position, on any thread", "[offload][file]") {
  run([] {
    const temporary_file file(0);
    const std::string text = "one two three";
    const std::span<const std::byte> bytes = testing::bytes_of(text);
    CHECK(io::write(file.get(), bytes.first(4)) == 4);
    const std::array rest{iovec{const_cast<char*>(text.data()) + 4, 4},
                          iovec{const_cast<char*>(text.data()) + 8, 5}};
    CHECK(io::writev(file.get(), rest) == 9);
    CHECK(file.position() == 13);
    file.rewind();
    std::vector<std::byte> back(64);
    CHECK(io::read(file.get(), back) == 13);
    CHECK(testing::text_of(std::span(back).first(13)) == text);
    CHECK_THROWS_AS(io::write(-1, bytes), std::system_error);
  });
}

TEST_CASE("file_call: a write that no thread has started has no effect when it is cancelled",
          "[offload][file]") {
  const limited_to limit(1, testing::threads::most_for_own);
  run([] {
    const temporary_file file(10);
    if (!file.writes_block()) return;
    busy_worker busy;
    CHECK_FALSE(move_on_after(5ms, [&] { io::write(file.get(), testing::bytes_of("never")); }));
    CHECK(file.position() == 0);
    std::error_code error;
    CHECK_FALSE(move_on_after(5ms, [&] {
      io::write(file.get(), testing::bytes_of("never"), error);
      snooze();
    }));
    CHECK(error == std::errc::operation_canceled);
    CHECK(file.position() == 0);
  });
}

TEST_CASE("file_call: close() ends the calls that no thread has started", "[offload][file]") {
  const limited_to limit(1, testing::threads::most_for_own);
  run([] {
    temporary_file file(10);
    if (!file.writes_block()) return;
    busy_worker busy;
    std::error_code error;
    auto writer = spin([&] { io::write(file.get(), testing::bytes_of("never"), error); });
    snooze();
    CHECK(writer.state() == fiber_state::waiting);
    file.close();
    writer.await();
    CHECK(error == std::errc::bad_file_descriptor);
  });
}

TEST_CASE("file_call returns a started write in spite of an interruption", "[offload][file]") {
  run([] {
    const temporary_file file(0);
    const std::vector<std::byte> much(testing::scaled(16 << 20, 1 << 20));
    std::size_t bytes_written = 0;
    for (int round = 0; round < 6; ++round) {
      std::size_t size = 0;
      std::error_code error;
      auto writer = spin([&] { size = io::write(file.get(), much, error); });
      for (int i = 0; i < round; ++i) snooze();
      writer.cancel();
      try {
        writer.await();
      } catch (const fiber_cancelled&) {
      }
      if (error) CHECK(error == std::errc::operation_canceled);
      bytes_written += size;
    }
    CHECK(file.position() == static_cast<off_t>(bytes_written));
  });
}

TEST_CASE("file_call: close() waits for the call that a thread executes", "[offload][file]") {
  run([] {
    const std::vector<std::byte> much(testing::scaled(16 << 20, 1 << 20));
    for (int round = 0; round < 6; ++round) {
      temporary_file file(0);
      std::size_t bytes_written = 0;
      std::error_code error;
      auto writer = spin([&] { bytes_written = io::write(file.get(), much, error); });
      for (int i = 0; i < round; ++i) snooze();
      file.close();
      writer.await();
      if (bytes_written == 0) CHECK(error == std::errc::bad_file_descriptor);
    }
  });
}
