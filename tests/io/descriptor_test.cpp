// SPDX-License-Identifier: MIT
// Descriptors on which a simple answer would be wrong: files past the kernel's cache, sockets that
// are ready and would wait all the same, masks that a library does not know.
#include <fcntl.h>
#include <linux/net_tstamp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <motet/motet.hpp>
#include <set>
#include <string>
#include <thread>

#include "catch.hpp"
#include "quiet.hpp"
#include "sockets.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using testing::bytes_of;
using testing::make_socket_pair;
using testing::run_here;

namespace {

constexpr std::size_t block_size = 4096;

struct block {
  block() : bytes(static_cast<std::byte*>(std::aligned_alloc(block_size, block_size)), &std::free) {
    if (bytes == nullptr) throw std::bad_alloc();
  }
  std::span<std::byte> span() const { return {bytes.get(), block_size}; }
  void fill(char letter) const { std::memset(bytes.get(), letter, block_size); }
  char first() const { return static_cast<char>(*bytes); }

  std::unique_ptr<std::byte, void (*)(void*)> bytes;
};

/// A file without a name. Not every file system can do without the cache: then it is an ordinary
/// one.
fd make_file(int flags) {
  for (const auto& place :
       {std::filesystem::current_path(), std::filesystem::temp_directory_path()}) {
    for (const int mode : {flags, flags & ~O_DIRECT}) {
      fd file(::open(place.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | mode, 0600));
      if (file) return file;
    }
  }
  throw std::runtime_error("no place for a file");
}

std::chrono::duration<double> processor_time() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return std::chrono::duration<double>(seconds(usage.ru_utime) + seconds(usage.ru_stime));
}

/// What the process has taken since, per time on the world's clock.
class load_meter {
 public:
  double load() const {
    const std::chrono::duration<double> duration = std::chrono::steady_clock::now() - start_;
    return (processor_time() - start_usage_) / duration;
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::duration<double> start_usage_ = processor_time();
};

/// How long a fruitless wait lasts. Under a sanitizer, whose own threads compute meanwhile, the
/// load is not measured.
constexpr auto wait_length = testing::under_asan || testing::under_tsan ? 50ms : 400ms;
constexpr double most_load = 0.1;

/// Does `later` on another thread, at the end of the wait.
template <typename F>
std::thread at_the_end(F later) {
  return std::thread([later] {
    std::this_thread::sleep_for(wait_length);
    later();
  });
}

/// An abstract Unix address that nobody else has.
struct unix_address {
  unix_address() {
    static std::atomic<int> number{0};
    address.sun_family = AF_UNIX;
    const std::string name =
        "motet-test-" + std::to_string(::getpid()) + "-" + std::to_string(++number);
    std::copy(name.begin(), name.end(), address.sun_path + 1);
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }

  sockaddr_un address{};
  socklen_t length;
};

fd unix_socket(int flags = 0) {
  return fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
}

/// A listener with room for one more connection, and the one that takes it.
struct full_listener {
  full_listener() : listener(unix_socket()), first(unix_socket()) {
    REQUIRE(::bind(listener.get(), address.get(), address.length) == 0);
    REQUIRE(::listen(listener.get(), 0) == 0);
    REQUIRE(::connect(first.get(), address.get(), address.length) == 0);
  }
  /// Two more may connect, one after the other.
  void make_room() const {
    for (int i = 0; i < 2; ++i) ::close(::accept(listener.get(), nullptr, nullptr));
  }

  unix_address address;
  fd listener;
  fd first;
};

/// A connection whose first end always has something in its error queue.
struct noisy_connection {
  noisy_connection() : listener(testing::make_listener()) {
    first = testing::connect_to(testing::port_of(listener.get()));
    second = fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const int flags = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE |
                      SOF_TIMESTAMPING_OPT_ID | SOF_TIMESTAMPING_OPT_TSONLY;
    REQUIRE(::setsockopt(first.get(), SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof flags) == 0);
    REQUIRE(::send(first.get(), "x", 1, 0) == 1);
    while (!testing::ready_now(first.get(), 0)) std::this_thread::sleep_for(1ms);
  }
  fd listener;
  fd first;
  fd second;
};

}  // namespace

TEST_CASE("io::read() and write() with O_DIRECT work at the file's position", "[descriptor]") {
  run_here([] {
    const fd file = make_file(O_DIRECT);
    const block page;
    const auto letters = [&](char first) {
      REQUIRE(::lseek(file.get(), 0, SEEK_SET) == 0);
      for (char letter = first; letter < first + 8; ++letter) {
        page.fill(letter);
        CHECK(io::write(file.get(), page.span()) == block_size);
      }
      CHECK(::lseek(file.get(), 0, SEEK_CUR) == 8 * block_size);
    };
    letters('a');
    letters('A');  // now that the file has its blocks, the kernel need not wait for more
    REQUIRE(::lseek(file.get(), 0, SEEK_SET) == 0);
    std::string text;
    const iovec vector{page.bytes.get(), block_size};
    for (int i = 0; i < 12; ++i) {
      const std::size_t size =
          i % 2 == 0 ? io::read(file.get(), page.span()) : io::readv(file.get(), {&vector, 1});
      if (size == 0) break;
      text += page.first();
    }
    CHECK(text == "ABCDEFGH");
  });
}

TEST_CASE("io::write() of fibers and threads to one file overwrites nothing", "[descriptor]") {
  for (const int mode : {0, static_cast<int>(O_DIRECT)}) {
    INFO("O_DIRECT " << mode);
    const fd file = make_file(mode);
    constexpr int writers = 3;
    constexpr int rounds = 20;
    const auto write_all = [&](int thread) {
      run_here([&] {
        group fibers;
        for (int writer = 0; writer < writers; ++writer) {
          fibers.spin([&, letter = static_cast<char>('a' + thread * writers + writer)] {
            const block page;
            for (int i = 0; i < rounds; ++i) {
              page.fill(letter);
              CHECK(io::write(file.get(), page.span()) == block_size);
            }
          });
        }
        fibers.await_all();
      });
    };
    std::thread second_thread([&] { write_all(1); });
    write_all(0);
    second_thread.join();
    REQUIRE(::lseek(file.get(), 0, SEEK_SET) == 0);
    std::multiset<char> letters;
    for (const block page; ::read(file.get(), page.bytes.get(), block_size) == block_size;) {
      letters.insert(page.first());
    }
    for (char letter = 'a'; letter < 'a' + 2 * writers; ++letter) {
      CHECK(letters.count(letter) == rounds);
    }
  }
}

TEST_CASE("io::connect() that must wait neither spins nor delays a timer", "[descriptor]") {
  for (const int mode : {0, static_cast<int>(SOCK_NONBLOCK)}) {
    INFO("mode " << mode);
    run_here([&] {
      const full_listener busy;
      std::thread acceptor = at_the_end([&] { busy.make_room(); });
      const load_meter meter;
      auto longest = clock::duration::zero();
      fiber_ref timers = spin([&] {
        if (testing::on_sim()) return;  // time would jump over the wait
        for (;;) {
          const auto start = std::chrono::steady_clock::now();
          sleep_for(5ms);
          longest = std::max<clock::duration>(longest, std::chrono::steady_clock::now() - start);
        }
      });
      const fd socket = unix_socket(mode);
      io::connect(socket.get(), busy.address.get(), busy.address.length);
      if (!testing::under_asan && !testing::under_tsan) CHECK(meter.load() < most_load);
      CHECK(longest < wait_length / 2);
      timers.cancel();
      acceptor.join();
    });
  }
}

TEST_CASE("io::connect() that must wait can be cancelled", "[descriptor]") {
  run_here([] {
    const full_listener busy;
    const fd socket = unix_socket(SOCK_NONBLOCK);
    auto connecting_fiber = spin([&] {
      const auto never = [&] {
        io::connect(socket.get(), busy.address.get(), busy.address.length);
      };
      CHECK(!move_on_after(20ms, never));
      CHECK(!move_on_after(100ms, never));
    });
    connecting_fiber.await();
    std::error_code error;
    auto connector =
        spin([&] { io::connect(socket.get(), busy.address.get(), busy.address.length, error); });
    sleep_for(20ms);
    const int number = ::dup(socket.get());
    io::close(socket.get());
    connector.await();
    CHECK(error == std::errc::bad_file_descriptor);
    REQUIRE(::dup2(number, socket.get()) == socket.get());  // for its owner to close
    ::close(number);
  });
}

TEST_CASE("io::recv(), splice() and copy() wait though nobody reads the error queue",
          "[descriptor]") {
  for (const int mode : {0, static_cast<int>(O_NONBLOCK)}) {
    INFO("mode " << mode);
    run_here([&] {
      noisy_connection noisy;
      REQUIRE(::fcntl(noisy.first.get(), F_SETFL, mode) == 0);
      std::thread sender = at_the_end([&] { ::send(noisy.second.get(), "data", 4, 0); });
      const load_meter meter;
      std::array<std::byte, 16> buffer{};
      CHECK(io::recv(noisy.first.get(), buffer) == 4);
      if (!testing::under_asan && !testing::under_tsan) CHECK(meter.load() < most_load);
      sender.join();

      net::tcp_stream stream{std::move(noisy.first)};
      std::thread second_sender = at_the_end([&] { ::send(noisy.second.get(), "more", 4, 0); });
      const load_meter of_stream;
      CHECK(stream.read(buffer) == 4);
      if (!testing::under_asan && !testing::under_tsan) CHECK(of_stream.load() < most_load);
      second_sender.join();

      const bool jumps = testing::on_sim() || testing::under_asan || testing::under_tsan;
      std::array<int, 2> way{};
      REQUIRE(::pipe2(way.data(), O_CLOEXEC) == 0);
      const fd exit(way[0]);
      const fd entry(way[1]);
      REQUIRE(::fcntl(stream.native_handle(), F_SETFL, O_NONBLOCK) == 0);
      std::thread third = at_the_end([&] { ::send(noisy.second.get(), "then", 4, 0); });
      const load_meter of_splice;
      CHECK(io::splice(stream.native_handle(), entry.get(), 16) == 4);
      if (!jumps) CHECK(of_splice.load() < most_load);
      third.join();

      auto ends = net::stream_pair();
      std::thread last = at_the_end([&] {
        ::send(noisy.second.get(), "last", 4, 0);
        ::shutdown(noisy.second.get(), SHUT_WR);
      });
      const load_meter of_copy;
      CHECK(copy(stream, ends.first) == 4);
      if (!jumps) CHECK(of_copy.load() < most_load);
      last.join();
    });
  }
}

TEST_CASE("io::wait_fd() waits for the events of its mask only", "[descriptor]") {
  run_here([] {
    auto ends = make_socket_pair();
    testing::fill(ends.first());
    auto waiter = spin([&] { CHECK(io::wait_fd(ends.first(), POLLOUT) == POLLOUT); });
    snooze();
    ::shutdown(ends.second(), SHUT_WR);
    sleep_for(10ms);
    CHECK(waiter.state() == fiber_state::waiting);
    testing::take_all(ends.second());
    waiter.await();
    CHECK(io::wait_fd(ends.first(), POLLIN) == POLLIN);
    CHECK(io::wait_fd(ends.first(), POLLIN | POLLRDHUP) == (POLLIN | POLLRDHUP));
  });
}

TEST_CASE("io::wait_fd() waits for POLLRDHUP though there is something to read", "[descriptor]") {
  run_here([] {
    auto ends = make_socket_pair();
    REQUIRE(::write(ends.second(), "abc", 3) == 3);
    std::thread finisher = at_the_end([&] { ::shutdown(ends.second(), SHUT_WR); });
    const load_meter meter;
    CHECK(io::wait_fd(ends.first(), POLLRDHUP) == POLLRDHUP);
    if (!testing::under_asan && !testing::under_tsan) CHECK(meter.load() < most_load);
    finisher.join();
    CHECK(testing::take_all(ends.first()) == "abc");
  });
}

TEST_CASE("io::wait_fd() waits for POLLPRI, and can be cancelled", "[descriptor]") {
  run_here([] {
    const fd listener = testing::make_listener();
    const fd first = testing::connect_to(testing::port_of(listener.get()));
    const fd second(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const std::size_t descriptors = testing::open_descriptors();
    CHECK(!move_on_after(5ms, [&] { io::wait_fd(first.get(), POLLPRI); }));
    auto urgent = spin([&] { return io::wait_fd(first.get(), POLLPRI | POLLRDHUP); });
    snooze();
    REQUIRE(::send(second.get(), "!", 1, MSG_OOB) == 1);
    CHECK(urgent.await() == POLLPRI);
    CHECK(testing::open_descriptors() == descriptors);
  });
}

TEST_CASE("io::wait_fd() waits for POLLPRI though ordinary bytes arrive", "[descriptor]") {
  run_here([] {
    const fd listener = testing::make_listener();
    const fd first = testing::connect_to(testing::port_of(listener.get()));
    const fd second(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    auto urgent = spin([&] { return io::wait_fd(first.get(), POLLPRI); });
    for (int i = 0; i < 3; ++i) {
      snooze();
      REQUIRE(::send(second.get(), "a", 1, 0) == 1);
      sleep_for(5ms);
      CHECK(urgent.state() == fiber_state::waiting);
    }
    REQUIRE(::send(second.get(), "!", 1, MSG_OOB) == 1);
    CHECK(urgent.await() == POLLPRI);
  });
}

TEST_CASE("io::wait_fd() reports a change of a file of the kernel that answers one poll only",
          "[descriptor]") {
  std::array<char, 65> name{};
  REQUIRE(::gethostname(name.data(), name.size() - 1) == 0);
  if (::sethostname(name.data(), std::strlen(name.data())) != 0) return;
  run_here([&] {
    if (backend_name() != "io_uring") return;  // libev looks twice, and time jumps on sim
    const fd changes(::open("/proc/sys/kernel/hostname", O_RDONLY | O_CLOEXEC));
    std::thread other = at_the_end([&] { ::sethostname(name.data(), std::strlen(name.data())); });
    const short reported = with_timeout(10s, [&] { return io::wait_fd(changes.get(), POLLPRI); });
    CHECK((reported & POLLPRI) != 0);
    other.join();
  });
}
