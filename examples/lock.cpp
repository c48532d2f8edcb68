// SPDX-License-Identifier: MIT
// Fibers change places only where they wait. Where that is in the middle of something, a mutex
// keeps the others out; a semaphore lets in a few. Run: lock
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <motet/motet.hpp>
#include <mutex>

using namespace std::chrono_literals;

namespace {

motet::mutex guarding;
motet::semaphore desks(2);
int balance = 0;
int busy = 0;
int busiest = 0;

void add_one() {
  const std::lock_guard lock(guarding);
  const int old_balance = balance;
  motet::sleep_for(1ms);  // without the lock others would read the same number here
  balance = old_balance + 1;
}

void be_served() {
  desks.acquire();
  busiest = std::max(busiest, ++busy);
  motet::sleep_for(5ms);
  --busy;
  desks.release();
}

}  // namespace

int main() {
  motet::group customers;
  for (int i = 0; i < 10; ++i) customers.spin(add_one);
  for (int i = 0; i < 10; ++i) customers.spin(be_served);
  customers.await_all();
  std::printf("the balance is %d, and at most %d were served at once\n", balance, busiest);
  return balance == 10 && busiest == 2 ? 0 : 1;
}
