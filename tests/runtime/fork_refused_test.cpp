// SPDX-License-Identifier: MIT
// A forked child that cannot have a backend: its waits throw, and it goes on when there are
// descriptors again.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <motet/motet.hpp>
#include <system_error>
#include <vector>

#include "catch.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;

namespace {

/// UBSan needs descriptors to look at an object's type.
#if defined(__has_feature)
#define MOTET_HAS_FEATURE(x) __has_feature(x)
#else
#define MOTET_HAS_FEATURE(x) 0
#endif
constexpr bool types_are_checked = MOTET_HAS_FEATURE(undefined_behavior_sanitizer);

/// Returns: the exit code of a child that calls `body`.
int code_of_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::alarm(20);
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/// Takes all descriptors there are.
class no_descriptors {
 public:
  no_descriptors() {
    const rlimit few{64, 64};
    ::setrlimit(RLIMIT_NOFILE, &few);
    for (int descriptor = 0; descriptor >= 0;) {
      descriptor = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
      if (descriptor >= 0) descriptors_.push_back(descriptor);
    }
  }
  no_descriptors(const no_descriptors&) = delete;
  no_descriptors& operator=(const no_descriptors&) = delete;
  ~no_descriptors() {
    for (const int descriptor : descriptors_) ::close(descriptor);
  }

 private:
  std::vector<int> descriptors_;
};

template <typename F>
bool is_refused(F f) {
  try {
    f();
  } catch (const std::system_error& refused) {
    return refused.code() == std::errc::too_many_files_open;
  }
  return false;
}

}  // namespace

TEST_CASE("fork(): waits throw in a child that can have no backend, until it can", "[fork]") {
  if (types_are_checked) return;
  run([] {
    sleep_for(1ms);
    CHECK(code_of_child([] {
            {
              const no_descriptors exhausted;
              for (int i = 0; i < 3; ++i) {
                if (!is_refused([] { sleep_for(1ms); })) return 1;
                if (!is_refused([] { snooze(); })) return 2;
              }
              const auto present = clock::now();  // no switchpoint: it does not throw
              if (present < clock::time_point()) return 3;
              std::error_code quiet;
              std::byte room[1];
              io::read(0, room, quiet);
              if (!quiet) return 4;
            }
            auto sleeper = spin([] { sleep_for(1ms); });
            sleeper.await();
            return move_on_after(1ms, [] { sleep(); }) ? 5 : 0;
          }) == 0);
  });
}

TEST_CASE("fork(): waits throw in the child of a spun fiber, and in the child's child", "[fork]") {
  if (types_are_checked) return;
  run([] {
    spin([] {
      CHECK(code_of_child([] {
              {
                const no_descriptors exhausted;
                if (!is_refused([] { sleep_for(1ms); })) return 1;
              }
              return code_of_child([] {
                sleep_for(1ms);
                return 0;
              });
            }) == 0);
    }).await();
  });
}

TEST_CASE("fork(): children of children that have not waited go on", "[fork]") {
  run([] {
    CHECK(code_of_child([] {
            return code_of_child([] {
              return code_of_child([] {
                sleep_for(1ms);
                return 0;
              });
            });
          }) == 0);
  });
}
