// SPDX-License-Identifier: MIT
// A fiber that goes to another thread and comes back, in the middle of a function: what is between
// the two lines runs there, with the same stack and the same variables. A portal leads back on
// every way out, also when an exception leaves it. Run: portal
#include <unistd.h>

#include <cstdio>
#include <motet/motet.hpp>
#include <stdexcept>

namespace {

// Not std::this_thread::get_id(), which a compiler takes for the same all through a function.
bool is_main() {
  return ::gettid() == ::getpid();
}

const char* place() {
  return is_main() ? "on the main thread" : "on the other thread";
}

}  // namespace

int main() {
  motet::thread thread([] { motet::sleep(); });
  motet::run([&] {
    std::printf("%s\n", place());
    try {
      const motet::portal visit(thread);
      std::printf("  %s\n", place());
      throw std::runtime_error("something is wrong there");
    } catch (const std::runtime_error& error) {
      std::printf("%s again: %s\n", place(), error.what());
    }
    if (!is_main()) throw std::logic_error("not back");
  });
}
