// SPDX-License-Identifier: MIT
// Fibonacci numbers with a fiber for every call: thousands wait for one another, each on a stack of
// its own, and none overflows. Run: fibonacci [N], from 0 to 20; 15 unless said
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <motet/motet.hpp>

namespace {

std::size_t fibers = 0;

int fibonacci(int n) {
  if (n < 2) return n;
  const auto call = [](int m) {
    ++fibers;
    return fibonacci(m);
  };
  const auto [first, second] =
      motet::await_all([&] { return call(n - 1); }, [&] { return call(n - 2); });
  return first + second;
}

}  // namespace

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 15;
  if (n < 0 || n > 20) {
    std::fputs("usage: fibonacci [N], N from 0 to 20\n", stderr);
    return 2;
  }
  const int number = fibonacci(n);
  std::printf("fibonacci(%d) = %d, with %zu fibers\n", n, number, fibers);
}
