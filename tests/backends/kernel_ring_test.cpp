// SPDX-License-Identifier: MIT
// A ring with and without what newer kernels offer.
#include "kernel_ring.hpp"

#include <sys/utsname.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "catch.hpp"
#include "support.hpp"

using namespace motet;
using namespace std::chrono_literals;
using detail::kernel_ring;

namespace {

/// MOTET_DISABLE with these words, too.
class without {
 public:
  explicit without(const std::string& words) {
    if (const char* words_set = std::getenv("MOTET_DISABLE")) old_words_ = words_set;
    ::setenv("MOTET_DISABLE", (old_words_ + "," + words).c_str(), 1);
  }
  without(const without&) = delete;
  without& operator=(const without&) = delete;
  ~without() { ::setenv("MOTET_DISABLE", old_words_.c_str(), 1); }

 private:
  std::string old_words_;
};

bool kernel_is_at_least(int major, int minor) {
  utsname system{};
  ::uname(&system);
  int own_major = 0;
  int own_minor = 0;
  std::sscanf(system.release, "%d.%d", &own_major, &own_minor);
  return std::pair(own_major, own_minor) >= std::pair(major, minor);
}

/// Every entry is used several times, and comes back as it was sent.
void passes_entries(kernel_ring& ring, std::uint64_t count) {
  std::uint64_t submissions = 0;
  for (std::uint64_t back = 0; back < count;) {
    while (submissions < count) {
      io_uring_sqe* entry = ring.entry();
      if (entry == nullptr) break;
      ::io_uring_prep_nop(entry);
      entry->user_data = ++submissions;
    }
    ring.enter_and_wait(clock::time_point::max());
    io_uring_cqe* completion = nullptr;
    while (::io_uring_peek_cqe(ring.get(), &completion) == 0) {
      REQUIRE(completion->user_data == ++back);
      ::io_uring_cqe_seen(ring.get(), completion);
    }
  }
}

void waits(kernel_ring& ring) {
  const auto begin = clock::now();
  ring.enter_and_wait(begin - 1h);
  ring.enter_and_wait(clock::time_point::min());
  ring.enter_and_wait(begin + 5ms);
  const auto past = clock::now();
  CHECK(past >= begin + 5ms);
  CHECK(past < begin + 1s);
}

void works(kernel_ring& ring) {
  passes_entries(ring, 100);
  waits(ring);
}

backend_options small() {
  backend_options options;
  options.submissions = 8;
  options.completions = 16;
  return options;
}

}  // namespace

TEST_CASE("kernel_ring uses what the kernel has, and each feature can be switched off", "[ring]") {
  const bool masked = testing::disabled("no_sqarray");
  const bool no_array = kernel_is_at_least(6, 6) && !testing::disabled("defer_taskrun") && !masked;
  const unsigned flags = masked ? 0
                                : (kernel_is_at_least(6, 12) ? detail::enter_absolute_timer : 0U) |
                                      (kernel_is_at_least(6, 15) ? detail::enter_no_iowait : 0U);
  kernel_ring whole(small());
  CHECK(((whole.get()->flags & detail::setup_no_sqarray) != 0) == no_array);
  CHECK(whole.waiting_flags() == flags);
  works(whole);

  for (const char* words : {"no_sqarray", "absolute_timeouts", "no_iowait", "registered_ring",
                            "defer_taskrun", "no_sqarray,absolute_timeouts,no_iowait"}) {
    const without setting(words);
    kernel_ring ring(small());
    const std::string_view list = words;
    if (list.find("no_sqarray") != list.npos) {
      CHECK((ring.get()->flags & detail::setup_no_sqarray) == 0);
    }
    if (list.find("absolute") != list.npos) {
      CHECK((ring.waiting_flags() & detail::enter_absolute_timer) == 0);
    }
    if (list.find("no_iowait") != list.npos) {
      CHECK((ring.waiting_flags() & detail::enter_no_iowait) == 0);
    }
    works(ring);
  }
}
