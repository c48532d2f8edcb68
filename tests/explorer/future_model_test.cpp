// SPDX-License-Identifier: MIT
// The word that a future waits on: detail/sync/publication.hpp.
#include <motet/detail/sync/publication.hpp>

#include "explorer/explore.hpp"
#include "explorer/model_test.hpp"

using namespace explorer;
using motet::detail::publication;

TEST_CASE("future::wait() and ready() see the value that set_value() publishes", "[explorer]") {
  const auto model = [](world& all) {
    publication word;
    plain<int> value;
    all.add_thread([&] {
      value.set(1);
      word.set();
    });
    for (int waiter = 0; waiter < 2; ++waiter) {
      all.add_thread([&] {
        word.wait();
        check(value.get() == 1, "the value has not come");
      });
    }
    all.add_thread([&] {
      if (word.is_set()) check(value.get() == 1, "the value has not come");
    });
    all.run();
  };
  check_model("a value and three that look for it", bounded(2), model,
              {{.what = kind::relaxed, .place = "publication.hpp:set"},
               {.what = kind::relaxed, .place = "publication.hpp:is_set"},
               {.what = kind::torn, .place = "publication.hpp:set"},
               {.what = kind::torn, .place = "publication.hpp:is_ready"}});
}
