// SPDX-License-Identifier: MIT
// More runnable fibers than the queue links: which of them goes first.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <motet/motet.hpp>
#include <vector>

#include "catch.hpp"
#include "quiet.hpp"
#include "support.hpp"

using namespace motet;
using testing::run_here;

namespace {

constexpr std::size_t many = 4'500;

/// How many bodies of fibers have begun and not ended, now and at most.
struct census {
  std::size_t present = 0;
  std::size_t most = 0;
};

/// A tree of `size` leaves.
void grow(std::size_t size, census& begun) {
  begun.most = std::max(begun.most, ++begun.present);
  if (size > 1) {
    std::vector<fiber<void>> children;
    for (int i = 0; i < 10; ++i) children.push_back(spin([&, size] { grow(size / 10, begun); }));
    for (const auto& child : children) child.await();
  }
  --begun.present;
}

/// Fibers that snooze again and again, and count their turns.
class crowd {
 public:
  crowd() : turns_(many) {
    for (std::size_t& turns : turns_) {
      fibers_.spin([&] {
        for (; !over_; ++turns) snooze();
      });
    }
  }
  void end() {
    over_ = true;
    fibers_.await_all();
  }
  std::size_t least_turns() const { return *std::min_element(turns_.begin(), turns_.end()); }

 private:
  bool over_ = false;
  std::vector<std::size_t> turns_;
  group fibers_;
};

}  // namespace

TEST_CASE("fiber::await(): among many fibers, the awaited one and then its awaiter go first",
          "[fiber]") {
  if (testing::under_tsan) return;  // too many fibers
  run_here([] {
    census begun;
    constexpr std::size_t leaves = 100'000;
    grow(leaves, begun);
    CHECK(begun.present == 0);
    CHECK(begun.most < leaves / 20);  // breadth first it would be all inner fibers, a ninth
  });
}

TEST_CASE("fiber::await() resumes several awaiters in the order of their calls, among many fibers",
          "[fiber]") {
  run_here([] {
    crowd others;
    snooze();
    std::vector<int> order;
    fiber<void> target = spin([] { snooze(); });
    group awaiters;
    for (int i = 0; i < 3; ++i) {
      awaiters.spin([&, i] {
        target.await();
        order.push_back(i);
      });
    }
    awaiters.await_all();
    CHECK(order == std::vector<int>{0, 1, 2});
    others.end();
  });
}

TEST_CASE("fiber::await() in a loop does not keep many other fibers waiting", "[fiber]") {
  run_here([] {
    crowd others;
    snooze();
    std::size_t awaited = 0;
    for (; others.least_turns() < 10; ++awaited) spin([] {}).await();
    others.end();
    CHECK(awaited > 10);
    CHECK(awaited <= 20 * 64);
  });
}

TEST_CASE("fork() among many runnable fibers: the child begins with one, and may spin as many",
          "[fork]") {
  if (testing::under_tsan) return;  // too many fibers
  run_here([] {
    crowd others;
    snooze();
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      std::size_t begun = 0;
      group fibers;
      for (std::size_t i = 0; i < many; ++i) fibers.spin([&] { ++begun; });
      fibers.await_all();
      ::_exit(begun == many ? 0 : 1);
    }
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    others.end();
  });
}
