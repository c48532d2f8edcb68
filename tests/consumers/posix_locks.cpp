// SPDX-License-Identifier: MIT
// A program of somebody else whose fibers hold a lock of the C++ library while they wait.
#include <unistd.h>

#include <iostream>
#include <motet/motet.hpp>
#include <motet/posix.hpp>
#include <mutex>

int main() {
  ::alarm(20);  // a thread that blocks would do so for ever
  if (motet::posix::switches()) return 1;
  std::mutex mutex;
  int entries = 0;
  motet::group fibers;
  for (int i = 0; i < 20; ++i) {
    fibers.spin([&] {
      const std::lock_guard guard(mutex);
      ::usleep(1'000);
      ++entries;
    });
  }
  fibers.await_all();
  std::cout << entries << " fibers have held the lock\n";
  return entries == 20 ? 0 : 1;
}
