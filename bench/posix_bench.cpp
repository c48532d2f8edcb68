// SPDX-License-Identifier: MIT
// What a blocking call of the C library costs with motet-posix: outside of fibers, in a fiber when
// it need not wait, when it waits, and when a thousand wait at once. The _libc and _motet subjects
// are what each is compared with.
//
// usage: posix_bench WHAT SIZE ITERATIONS
#include <dlfcn.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <motet/motet.hpp>
#include <span>
#include <stdexcept>
#include <vector>

#include "measure.hpp"

namespace {

using namespace motet;

void require(bool good) {
  if (!good) throw std::runtime_error("a call failed");
}

using read_function = ssize_t (*)(int, void*, std::size_t);

/// Returns: the C library's own function, past those that motet-posix defines.
read_function read_of_libc() {
  void* const library = ::dlopen("libc.so.6", RTLD_LAZY);
  require(library != nullptr);
  return reinterpret_cast<read_function>(::dlsym(library, "read"));
}

struct sockets {
  sockets() {
    std::array<int, 2> ends{};
    require(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
    first = fd(ends[0]);
    second = fd(ends[1]);
  }
  fd first;
  fd second;
};

/// A call that fails at once, so that little but its way to the kernel counts.
double failing_reads(read_function call, std::size_t iterations) {
  char byte = 0;
  return bench::cost(iterations, [&] {
    for (std::size_t i = 0; i < iterations; ++i) require(call(-1, &byte, 1) < 0);
  });
}

double outside(std::size_t, std::size_t iterations) {
  return failing_reads(&::read, iterations);
}

double outside_libc(std::size_t, std::size_t iterations) {
  return failing_reads(read_of_libc(), iterations);
}

/// Reads that find their byte, one at a time.
double ready_reads(read_function call, std::size_t iterations) {
  return run([&] {
    const sockets ends;
    const std::vector<char> block(1'000);
    char byte = 0;
    double span = 0;
    for (std::size_t i = 0; i < iterations; i += block.size()) {
      require(::write(ends.first.get(), block.data(), block.size()) ==
              static_cast<ssize_t>(block.size()));
      span += bench::cost(iterations, [&] {
        for (std::size_t j = 0; j < block.size(); ++j)
          require(call(ends.second.get(), &byte, 1) == 1);
      });
    }
    return span;
  });
}

double ready(std::size_t, std::size_t iterations) {
  return ready_reads(&::read, iterations);
}

double ready_libc(std::size_t, std::size_t iterations) {
  return ready_reads(read_of_libc(), iterations);
}

/// Two fibers send a byte to and fro; each read waits.
template <typename Read, typename Write>
double round_trips(std::size_t iterations, Read read, Write write) {
  return run([&] {
    const sockets ends;
    fiber<void> echo = spin([&] {
      char byte = 0;
      for (std::size_t i = 0; i < iterations; ++i) {
        read(ends.second.get(), byte);
        write(ends.second.get(), byte);
      }
    });
    const double span = bench::cost(iterations, [&] {
      char byte = 0;
      for (std::size_t i = 0; i < iterations; ++i) {
        write(ends.first.get(), byte);
        read(ends.first.get(), byte);
      }
    });
    echo.await();
    return span;
  });
}

double waiting(std::size_t, std::size_t iterations) {
  return round_trips(
      iterations, [](int fd, char& byte) { require(::read(fd, &byte, 1) == 1); },
      [](int fd, char& byte) { require(::write(fd, &byte, 1) == 1); });
}

double waiting_motet(std::size_t, std::size_t iterations) {
  return round_trips(
      iterations,
      [](int fd, char& byte) {
        require(io::read(fd, std::as_writable_bytes(std::span(&byte, 1))) == 1);
      },
      [](int fd, char& byte) { require(io::write(fd, std::as_bytes(std::span(&byte, 1))) == 1); });
}

/// Milliseconds that `size` calls take which wait for 1 s each.
double second(std::size_t size, std::size_t) {
  const double start = bench::now();
  run([&] {
    group callers;
    for (std::size_t i = 0; i < size; ++i) {
      callers.spin([] {
        const sockets ends;
        pollfd entry{ends.first.get(), POLLIN, 0};
        require(::poll(&entry, 1, 1'000) == 0);
      });
    }
    callers.await_all();
  });
  return (bench::now() - start) / 1e6;
}

constexpr std::array<bench::subject, 7> subjects{{
    {"outside", outside},
    {"outside_libc", outside_libc},
    {"ready", ready},
    {"ready_libc", ready_libc},
    {"waiting", waiting},
    {"waiting_motet", waiting_motet},
    {"second", second},
}};

}  // namespace

int main(int count, char** words) {
  return bench::main_of(subjects, count, words);
}
