// SPDX-License-Identifier: MIT
// How a parallel_for() ends: threads/shared_loop.hpp.
#include <array>

#include "explorer/explore.hpp"
#include "explorer/model_test.hpp"
#include "threads/shared_loop.hpp"

using namespace explorer;
using motet::detail::shared_loop;

namespace {

/// Claims one element at a time, as call_blocks() does.
template <typename Element>
void help(shared_loop& loop, Element element) {
  loop.begin_block();
  for (auto block = loop.claim(1); !block.empty(); block = loop.claim(1)) {
    element(block.first);
    loop.end_block();
    loop.begin_block();
  }
  loop.end_help();
}

}  // namespace

TEST_CASE("parallel_for() returns when each element has been called", "[explorer]") {
  const auto model = [](world& all) {
    shared_loop loop(2, 2);
    std::array<plain<int>, 2> calls;
    for (int helper = 0; helper < 2; ++helper) {
      all.add_thread([&] { help(loop, [&](std::size_t i) { calls[i].set(calls[i].get() + 1); }); });
    }
    all.add_thread([&] {
      loop.await_end();
      for (const auto& element : calls) check(element.get() == 1, "a call is missing");
    });
    all.run();
  };
  check_model("two helpers, two elements", bounded(2), model,
              {{.what = kind::blind, .place = "shared_loop.hpp:end_block"},
               {.what = kind::relaxed, .place = "shared_loop.hpp:end_block"}});
}

TEST_CASE("parallel_for() that is interrupted returns when no call runs", "[explorer]") {
  const auto model = [](world& all) {
    shared_loop loop(2, 2);
    plain<int> frame;
    for (int helper = 0; helper < 2; ++helper) {
      all.add_thread([&] {
        help(loop, [&](std::size_t i) {
          if (i == 0) frame.set(1);
        });
      });
    }
    all.add_thread([&] {
      loop.abandon();
      frame.set(2);
    });
    all.run();
  };
  check_model("two helpers and an interruption", bounded(2), model,
              {{.what = kind::blind, .place = "shared_loop.hpp:abandon"},
               {.what = kind::relaxed, .place = "shared_loop.hpp:end_block"}});
}
