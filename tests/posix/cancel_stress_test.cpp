// SPDX-License-Identifier: MIT
// A client that knows nothing of motet, whose calls end at random: by a time limit, or because its
// fiber is cancelled. What it has once been told stays true, and nothing is left behind.
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <motet/motet.hpp>
#include <motet/posix.hpp>
#include <random>
#include <string>

#include "catch.hpp"
#include "support.hpp"

namespace {

using namespace motet;
using namespace std::chrono_literals;

sockaddr_un address_of(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(&address.sun_path[1], sizeof address.sun_path - 2);  // an abstract name
  return address;
}

/// Answers each number with the next one.
void serve(const fd& connection) {
  std::uint64_t number = 0;
  while (::read(connection.get(), &number, sizeof number) == sizeof number) {
    ++number;
    if (::send(connection.get(), &number, sizeof number, MSG_NOSIGNAL) != sizeof number) break;
  }
}

class server {
 public:
  explicit server(const std::string& name) : listener_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    const sockaddr_un address = address_of(name);
    REQUIRE(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) ==
            0);
    REQUIRE(::listen(listener_.get(), 64) == 0);
  }
  void run() {
    for (;;) {
      auto connection = std::make_shared<fd>(::accept(listener_.get(), nullptr, nullptr));
      if (connection->get() < 0) return;
      spin([connection] { serve(*connection); });
    }
  }

 private:
  fd listener_;
};

/// As such libraries are written: they wait by poll(2), and begin again with a new connection after
/// any error.
class client {
 public:
  explicit client(std::string name) : name_(std::move(name)) {}
  ~client() { drop(); }
  client(const client&) = delete;
  client& operator=(const client&) = delete;

  /// Returns: the answer; 0 after an error.
  std::uint64_t ask(std::uint64_t number) {
    std::uint64_t answer = 0;
    if (!connected() || !write_all(number) || !read_all(answer)) {
      drop();
      return 0;
    }
    return answer;
  }

 private:
  bool connected() {
    if (socket_ >= 0) return true;
    const sockaddr_un address = address_of(name_);
    socket_ = ::socket(AF_UNIX, SOCK_STREAM, 0);
    return ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  bool write_all(std::uint64_t number) const {
    return ::send(socket_, &number, sizeof number, MSG_NOSIGNAL) == sizeof number;
  }
  bool read_all(std::uint64_t& answer) const {
    for (;;) {
      pollfd look{socket_, POLLIN, 0};
      const int count = ::poll(&look, 1, -1);
      if (count < 0 && errno != EINTR && errno != EAGAIN) return false;
      const ssize_t size = ::recv(socket_, &answer, sizeof answer, MSG_DONTWAIT);
      if (size == sizeof answer) return true;
      if (size >= 0 || errno != EAGAIN) return false;
    }
  }
  void drop() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }

  const std::string name_;
  int socket_ = -1;
};

std::size_t open_descriptors() {
  std::size_t count = 0;
  DIR* const directory = ::opendir("/proc/self/fd");
  while (::readdir(directory) != nullptr) ++count;
  ::closedir(directory);
  return count;
}

/// Runs `use(name, random)` beside a server; what it opens is closed afterwards.
template <typename Use>
void beside_server(Use use) {
  run([&] {
    const std::string name = "motet-cancel-" + std::to_string(::getpid());
    const std::size_t before = open_descriptors();
    {
      server echo(name);
      fiber<void> accepting = spin([&] { echo.run(); });
      std::mt19937 random(7);
      use(name, random);
      accepting.cancel();
      accepting.await();
    }
    sleep_for(20ms);
    CHECK(open_descriptors() == before);
  });
}

std::chrono::nanoseconds round_trip(client& asking) {
  constexpr int count = 100;
  const auto start = clock::now();
  for (std::uint64_t number = 0; number < count; ++number) CHECK(asking.ask(number) == number + 1);
  return (clock::now() - start) / count;
}

/// ThreadSanitizer remembers every fiber.
std::size_t ends() {
  return testing::scaled(testing::under_tsan ? 100'000 : 1'000'000, 2'000);
}

}  // namespace

TEST_CASE("move_on_after() ends calls of a client at random, and later answers are right") {
  beside_server([](const std::string& name, std::mt19937& random) {
    client asking(name);
    const auto longest = static_cast<std::uint64_t>((2 * round_trip(asking)).count());
    std::size_t answered = 0;
    std::size_t ended = 0;
    std::size_t wrong = 0;
    for (std::uint64_t number = 1; ended < ends(); ++number) {
      const auto limit = std::chrono::nanoseconds(random() % longest);
      const auto answer = move_on_after(limit, [&] { return asking.ask(number); });
      if (!answer) {
        ++ended;
      } else {
        ++answered;
        if (*answer != number + 1) ++wrong;
      }
    }
    CHECK(answered > 0);
    CHECK(wrong == 0);
    CHECK(asking.ask(100) == 101);
  });
}

TEST_CASE("fiber::cancel() ends calls of a client at random, and later answers are right") {
  beside_server([](const std::string& name, std::mt19937& random) {
    client asking(name);
    std::uint64_t number = 0;
    std::size_t answered = 0;
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < ends(); ++i) {
      fiber<void> user = spin([&] {
        for (;;) {
          const std::uint64_t asked = ++number;
          const std::uint64_t answer = asking.ask(asked);
          snooze();
          ++answered;
          if (answer != asked + 1) ++wrong;
        }
      });
      for (std::size_t turns = random() % 12; turns > 0; --turns) snooze();
      user.cancel();
      CHECK_THROWS_AS(user.await(), fiber_cancelled);
    }
    CHECK(answered > 0);
    CHECK(wrong == 0);
    CHECK(asking.ask(100) == 101);
  });
}
