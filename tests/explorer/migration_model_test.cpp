// SPDX-License-Identifier: MIT
// A fiber travels to another thread: either that thread takes it, or its home calls it back:
// migration/journey.hpp, migration/residence.cpp.
#include <motet/motet.hpp>

#include "explorer/explore.hpp"
#include "explorer/model_test.hpp"
#include "explorer/runtime.hpp"

using namespace explorer;

TEST_CASE("teleport(): a traveller that is cancelled on its way goes on in one place",
          "[explorer]") {
  const auto model = [](world& all) {
    int arrivals = 0;
    int recalls = 0;
    add_runtime(all, [&] {
      motet::thread destination(still_options(), [] { motet::sleep(); });
      const auto traveller = motet::spin([&] {
        try {
          motet::teleport(destination);
          ++arrivals;
        } catch (const motet::cancelled&) {
          ++recalls;
          throw;
        }
      });
      motet::snooze();
      traveller.cancel();
      try {
        traveller.await();
      } catch (const motet::fiber_cancelled&) {
      }
      destination.cancel();
    });
    all.run();
    check(arrivals + recalls == 1, "the traveller was in two places, or in none");
  };
  check_model("a traveller that is called back", bounded_runtime(1), model,
              {{.what = kind::torn, .place = "residence.cpp:call_back", .crashes = true},
               {.what = kind::torn, .place = "journey.hpp:claim", .crashes = true}});
}
