// SPDX-License-Identifier: MIT
// Fan out and in again: one fiber makes numbers, four look whether they are prime, one counts. Each
// stage closes its channel when it is done, so the whole ends in order. Run: pipeline
#include <cstdio>
#include <motet/motet.hpp>

namespace {

bool is_prime(int number) {
  for (int divisor = 2; divisor * divisor <= number; ++divisor) {
    if (number % divisor == 0) return false;
  }
  return number > 1;
}

void number(motet::channel<int>& numbers) {
  for (int number = 0; number < 10'000; ++number) numbers.push(number);
  numbers.close();
}

void sieve(motet::channel<int>& numbers, motet::channel<int>& primes) {
  for (const int number : numbers) {
    if (is_prime(number)) primes.push(number);
  }
}

void sieve_with_four(motet::channel<int>& numbers, motet::channel<int>& primes) {
  motet::group sieves;
  for (int i = 0; i < 4; ++i) sieves.spin([&] { sieve(numbers, primes); });
  sieves.await_all();
  primes.close();  // not before all four are done
}

}  // namespace

int main() {
  motet::channel<int> numbers(16);
  motet::channel<int> primes(16);
  int count = 0;
  motet::await_all([&] { number(numbers); },  //
                   [&] { sieve_with_four(numbers, primes); },
                   [&] {
                     for ([[maybe_unused]] const int number : primes) ++count;
                   });
  std::printf("%d primes below 10,000\n", count);
  return count == 1'229 ? 0 : 1;
}
