// SPDX-License-Identifier: MIT
// A call on an offload thread whose caller is interrupted: threads/offload.cpp.
#include <exception>
#include <motet/motet.hpp>

#include "explorer/explore.hpp"
#include "explorer/model_test.hpp"
#include "explorer/runtime.hpp"
#include "platform/offload/blocking_pool.hpp"

using namespace explorer;

namespace {

struct interruption : std::exception {};

}  // namespace

TEST_CASE("offload_owned() and an interruption", "[explorer]") {
  const auto model = [](world& all) {
    motet::detail::blocking_pool::lock();
    motet::detail::blocking_pool::abandon();  // threads of the execution before
    int results = 0;
    int interruptions = 0;
    add_runtime(all, [&] {
      motet::fiber caller = motet::spin([&] {
        try {
          results += motet::offload_owned([] { return 1; });
        } catch (const interruption&) {
          ++interruptions;
        }
      });
      motet::snooze();
      caller.raise(interruption());
      std::move(caller).await();
    });
    all.run();
    check(results + interruptions == 1, "the call has not ended once");
  };
  check_model("a call and an interruption", bounded_runtime(2), model,
              {{.what = kind::torn, .place = "offload.cpp:await_end", .crashes = true},
               {.what = kind::torn, .place = "offload.cpp:run", .crashes = true}});
}
