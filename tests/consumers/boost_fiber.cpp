// SPDX-License-Identifier: MIT
// A program of Boost.Fiber's, on motet's fibers.
#include <motet/compat/boost_fiber.hpp>

int main() {
  boost::fibers::unbuffered_channel<int> numbers;
  boost::fibers::fiber producer([&] {
    for (int number : {1, 2, 3}) numbers.push(number);
    numbers.close();
  });
  int sum = 0;
  for (int number : numbers) sum += number;
  producer.join();
  return sum == 6 ? 0 : 1;
}
