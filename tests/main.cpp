// SPDX-License-Identifier: MIT
// The tests' main(). A backend that this kernel refuses is skipped, which Meson knows by the
// code 77.
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "run_here.hpp"

#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

namespace {

constexpr int skipped = 77;

/// Asks for a ring without parameters: EFAULT means that the call itself is allowed.
/// Source: io_uring_setup(2).
bool ring_refused() {
  const long result = ::syscall(SYS_io_uring_setup, 1, nullptr);
  return result < 0 && errno != EFAULT;
}

}  // namespace

int main(int argc, char** argv) {
  const char* backend_name = std::getenv("MOTET_BACKEND");
  if (backend_name != nullptr && std::string(backend_name) == "io_uring" && ring_refused()) {
    std::puts("skipped: io_uring is refused here");
    return skipped;
  }
  Catch::Session session;
  int failures = session.applyCommandLine(argc, argv);
  for (bool once_more = failures == 0; once_more;
       once_more = failures == 0 && testing::next_round())
    failures = session.run();
  return failures;
}
