// SPDX-License-Identifier: MIT
// Interruption against completion, many times over: whichever is first, every byte and every
// connection is accounted for.
#include <poll.h>
#include <sys/ioctl.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <motet/motet.hpp>
#include <random>
#include <string>

#include "catch.hpp"
#include "fixtures.hpp"
#include "sockets.hpp"
#include "support.hpp"

using namespace motet;
using testing::oops;

namespace {

std::size_t rounds() {
  return testing::scaled(100'000, testing::under_tsan ? 2'000 : 5'000);
}

/// How a call is interrupted.
enum class by { cancel, raise, deadline };

const char* name_of(by way) {
  switch (way) {
    case by::cancel:
      return "cancel";
    case by::raise:
      return "raise";
    case by::deadline:
      return "deadline";
  }
  return "";
}

/// Deadlines from the past to about as long as a round takes, so that some are first and some not;
/// and now and then one that is not first however slow the machine is.
clock::duration tiny(std::mt19937& dice) {
  if (dice() % 8 == 0) return std::chrono::seconds(5);
  return std::chrono::nanoseconds(std::uniform_int_distribution<int>(0, 8'000)(dice));
}

/// Calls `f` on a fiber, and others meanwhile: `completes` lets it finish, something interrupts it.
/// Returns: whether `f` was interrupted; what it did it has written down itself.
template <typename F, typename Completes>
bool race(by way, std::mt19937& dice, F f, Completes completes) {
  bool interrupted = false;
  const unsigned order = dice();
  auto racer = spin([&] {
    try {
      if (way == by::deadline) {
        interrupted = !move_on_after(tiny(dice), f);
      } else {
        f();
      }
      snooze();  // what came too late comes here
    } catch (const cancelled&) {
      interrupted = true;
    } catch (const oops&) {
      interrupted = true;
    }
  });
  const auto interrupt = [&] {
    if (way == by::cancel) racer.cancel();
    if (way == by::raise) racer.raise(oops());
  };
  snooze();  // it has started: a fiber that is interrupted before never does
  if ((order & 1) != 0) snooze();
  if ((order & 2) != 0) completes();
  if ((order & 4) != 0) snooze();
  if ((order & 24) == 24) {
    for (unsigned i = 0; i < (order >> 8) % 100; ++i) snooze();
  }
  interrupt();
  if ((order & 2) == 0) completes();
  racer.await();
  return interrupted;
}

std::size_t bytes_waiting(int fd) {
  int count = 0;
  REQUIRE(::ioctl(fd, FIONREAD, &count) == 0);
  return static_cast<std::size_t>(count);
}

}  // namespace

TEST_CASE("io::read() that races an interruption delivers its byte or leaves it", "[race]") {
  for (const by way : {by::cancel, by::raise, by::deadline}) {
    for (const int kind : {0, 1, 2, 3}) {
      run([&] {
        INFO("by " << name_of(way) << ", kind " << kind);
        const int mode = kind < 2 ? 0 : O_NONBLOCK;  // which SOCK_NONBLOCK is too
        auto pair = kind % 2 == 0 ? testing::make_socket_pair(mode) : testing::make_pipe(mode);
        std::mt19937 dice(static_cast<unsigned>(kind) + 1);
        std::uint8_t next_sent = 0;
        std::uint8_t next_expected = 0;
        std::size_t bytes_sent = 0;
        std::size_t bytes_read = 0;
        std::size_t wrong = 0;
        std::size_t interruptions = 0;
        const std::size_t count = rounds() / 4;
        for (std::size_t round = 0; round < count; ++round) {
          const bool interrupted = race(
              way, dice,
              [&] {
                std::array<std::byte, 3> buffer;
                const std::size_t size = io::read(pair.first(), buffer);
                for (std::size_t i = 0; i < size; ++i) {
                  wrong += buffer[i] == std::byte{next_expected++} ? 0 : 1;
                }
                bytes_read += size;
              },
              [&] {
                for (unsigned i = 0; i <= dice() % 2; ++i) {
                  const std::uint8_t byte = next_sent++;
                  bytes_sent += static_cast<std::size_t>(::write(pair.second(), &byte, 1));
                }
              });
          interruptions += interrupted ? 1 : 0;
          REQUIRE(bytes_read + bytes_waiting(pair.first()) == bytes_sent);
        }
        CHECK(wrong == 0);
        CHECK(bytes_read > 0);
        CHECK(interruptions > 0);
        CHECK(bytes_sent > bytes_read / 2);
        for (const char byte : testing::take_all(pair.first())) {
          wrong += static_cast<std::uint8_t>(byte) == next_expected++ ? 0 : 1;
        }
        CHECK(wrong == 0);
        CHECK(next_expected == next_sent);
      });
    }
  }
}

TEST_CASE("io::write() that races an interruption has written what it returns, no more", "[race]") {
  for (const by way : {by::cancel, by::raise, by::deadline}) {
    for (const int kind : {0, 1}) {
      run([&] {
        INFO("by " << name_of(way) << ", kind " << kind);
        auto pair = kind == 0 ? testing::make_socket_pair() : testing::make_pipe();
        std::size_t in_flight = testing::fill(pair.second());
        std::mt19937 dice(7);
        std::string bytes;
        std::size_t length = 0;
        std::size_t interruptions = 0;
        std::size_t completed = 0;
        const std::string text(64, 'w');
        const std::size_t count = testing::scaled(8'000, 125);
        for (std::size_t round = 0; round < count; ++round) {
          const bool interrupted = race(
              way, dice, [&] { length += io::write(pair.second(), testing::bytes_of(text)); },
              [&] {
                bytes = testing::take_all(pair.first());
                in_flight -= bytes.size();
              });
          interruptions += interrupted ? 1 : 0;
          completed += length > 0 ? 1 : 0;
          in_flight += std::exchange(length, 0);
          REQUIRE(bytes_waiting(pair.first()) == in_flight);
          const std::size_t addition = testing::fill(pair.second());
          in_flight += addition;
        }
        CHECK(interruptions > 0);
        CHECK(completed > 0);
        // A kernel that need not wait for a poll is faster than any interruption here.
        if (!testing::kernel_acts_any_time()) CHECK(completed < count);
        CHECK(testing::take_all(pair.first()).size() == in_flight);
      });
    }
  }
}

TEST_CASE("io::accept() that races an interruption returns the connection or leaves it", "[race]") {
  for (const by way : {by::cancel, by::raise, by::deadline}) {
    for (const int mode : {0, static_cast<int>(SOCK_NONBLOCK)}) {
      run([&] {
        INFO("by " << name_of(way) << ", mode " << mode);
        const fd listener = testing::make_listener(mode);
        const std::uint16_t port = testing::port_of(listener.get());
        std::mt19937 dice(11);
        std::size_t accepted = 0;
        std::size_t leftovers = 0;
        std::size_t interruptions = 0;
        const std::size_t descriptors = testing::open_descriptors();
        const std::size_t count = rounds() / 20;
        for (std::size_t round = 0; round < count; ++round) {
          fd peer;
          const bool interrupted = race(
              way, dice,
              [&] {
                const fd connection(io::accept(listener.get()));
                ++accepted;
              },
              [&] { peer = testing::connect_to(port); });
          interruptions += interrupted ? 1 : 0;
          // On a busy machine the peer is connected before the listener has the connection.
          pollfd entry{listener.get(), POLLIN, 0};
          while (::poll(&entry, 1, accepted + leftovers <= round ? 1'000 : 0) > 0) {
            const fd connection(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
            ++leftovers;
          }
          REQUIRE(accepted + leftovers == round + 1);
        }
        CHECK(interruptions > 0);
        CHECK(accepted > 0);
        CHECK(testing::open_descriptors() == descriptors);
      });
    }
  }
}

TEST_CASE("io::close() that races a byte ends the reader once", "[race]") {
  run([] {
    std::mt19937 dice(13);
    std::size_t reads = 0;
    std::size_t refusals = 0;
    const std::size_t count = rounds();
    for (std::size_t round = 0; round < count; ++round) {
      auto pair = testing::make_socket_pair();
      auto reader = spin([&, fd = pair.first()] {
        std::byte buffer[1];
        std::error_code error;
        const std::size_t size = io::read(fd, buffer, error);
        if (size == 1) ++reads;
        if (error == std::errc::bad_file_descriptor) ++refusals;
      });
      snooze();
      const unsigned order = dice();
      if ((order & 1) != 0) snooze();
      if ((order & 2) != 0) REQUIRE(::write(pair.second(), "x", 1) == 1);
      if ((order & 4) != 0) snooze();
      io::close(pair.first());
      pair.forget_first();
      reader.await();
      REQUIRE(reads + refusals == round + 1);
    }
    CHECK(reads > 0);
    CHECK(refusals > 0);
  });
}
