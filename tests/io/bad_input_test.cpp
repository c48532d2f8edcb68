// SPDX-License-Identifier: MIT
// Full disks, and signals five thousand times a second: each call says what it did, and did it.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <motet/motet.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "catch.hpp"
#include "fixtures.hpp"
#include "io/scratch.hpp"
#include "io/servers.hpp"
#include "io/streams.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::error_of;
using testing::scaled;

namespace {

constexpr std::size_t disk = std::size_t{256} << 10;

/// What a full disk is told of; returns the number of the promise that was broken, or 0.
int fill_disk(const std::string& directory) {
  const std::string text(2 * disk, 'x');
  file big = file::open(directory + "/big", O_RDWR | O_CREAT);
  std::error_code error;
  const std::size_t size = big.write_all(std::as_bytes(std::span(text)), error);
  if (error != std::errc::no_space_on_device) return 1;
  if (size == 0 || static_cast<off_t>(size) != big.size()) return 2;
  if (error_of([&] { big.append("y"); }) != std::errc::no_space_on_device) return 3;
  if (error_of([&] { io::fallocate(big.native_handle(), 0, 0, 2 * disk); }) !=
      std::errc::no_space_on_device) {
    return 4;
  }
  file second = file::open(directory + "/other", O_RDWR | O_CREAT);
  big.seek(0);
  if (error_of([&] { copy(big, second); }) != std::errc::no_space_on_device) return 5;
  big.resize(static_cast<off_t>(size / 2));
  second.write_all("there is room again");
  return second.size() == 19 ? 0 : 6;
}

/// In a child that has a small file system for itself. Returns: -1 if the kernel refuses that.
int with_small_disk(const std::string& place) {
  const pid_t child = ::fork();
  if (child == 0) {
    const bool alone = ::unshare(CLONE_NEWNS) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
    const std::string size = "size=" + std::to_string(disk);
    if (!alone || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", place.c_str(), "tmpfs", 0, size.c_str()) != 0) {
      ::_exit(99);
    }
    ::_exit(run([&] { return fill_disk(place); }));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 98;
  return code == 99 ? -1 : code;
}

std::atomic<int> alarms;  // of whichever thread the kernel takes

/// Signals that restart no call, so often that they fall into most of them.
class storm {
 public:
  storm() {
    struct sigaction counting{};
    counting.sa_handler = [](int) { ++alarms; };
    ::sigaction(SIGALRM, &counting, &before_);
    constexpr itimerval often{{0, 200}, {0, 200}};
    ::setitimer(ITIMER_REAL, &often, nullptr);
  }
  storm(const storm&) = delete;
  storm& operator=(const storm&) = delete;
  ~storm() {
    constexpr itimerval never{};
    ::setitimer(ITIMER_REAL, &never, nullptr);
    ::sigaction(SIGALRM, &before_, nullptr);
  }

 private:
  struct sigaction before_{};
};

}  // namespace

TEST_CASE("file::write_all(), append() and copy() throw if the disk is full", "[bad]") {
  const testing::scratch_directory place;
  const int promise = with_small_disk(place.name());
  if (promise >= 0) CHECK(promise == 0);
  run([] {
    file full = file::open("/dev/full", O_WRONLY);
    CHECK(error_of([&] { full.write_all("text"); }) == std::errc::no_space_on_device);
    CHECK(error_of([&] {
            writer output(full);
            output.write("text");
            output.flush();
          }) == std::errc::no_space_on_device);
  });
}

TEST_CASE("io calls go on when a signal interrupts them", "[bad]") {
  alarms = 0;
  const storm raging;
  run([] {
    group server;
    net::tcp_listener listener(net::endpoint::loopback(0));
    server.spin([&] { listener.serve(testing::echo); });
    const testing::scratch_name name;
    file target = file::open(name, O_RDWR | O_CREAT);
    const std::string text(100'000, 't');
    const std::size_t rounds = scaled(300, 30);
    for (std::size_t round = 0; round < rounds; ++round) {
      net::tcp_stream peer = net::tcp_stream::connect(listener.local_endpoint());
      auto asker = spin([&] { peer.write_all(text); });
      std::vector<std::byte> answer(text.size());
      std::error_code error;
      CHECK(io::read_exactly(peer.native_handle(), answer, error) == text.size());
      asker.await();
      CHECK(target.write_all(std::as_bytes(std::span(text)), error) == text.size());
      target.seek(0);
      CHECK(target.read_exactly(answer, error) == text.size());
      target.resize(0);
      CHECK_FALSE(error);
      net::udp_socket datagrams(net::endpoint::loopback(0));
      datagrams.send_to(std::as_bytes(std::span(text)).first(9), datagrams.local_endpoint());
      CHECK(datagrams.receive_from(answer).size == 9);
      CHECK(run_command({.program = "true"}).status);
      CHECK_FALSE(move_on_after(1ms, [&] { datagrams.receive_from(answer); }));
      CHECK(offload([] { return ::usleep(300) == 0 || errno == EINTR; }));
    }
    server.cancel();
  });
  CHECK(alarms > 20);
}
