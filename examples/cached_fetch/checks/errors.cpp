// SPDX-License-Identifier: MIT
// C8: what goes wrong is told as what it is; what a cache cannot keep is delivered all the same.
#include "checks.hpp"

namespace cached_fetch {

using namespace std::chrono_literals;

void check_errors(report& found) {
  const own_server server({.reply_after = 5ms});
  const own_server rude({.reply_after = 5ms, .close_after = 1});
  stage here(found);

  const request_ref cut = here.ask("cut", {.server = rude.where()});
  here.expect_outcome(cut, outcome::kind::error, "eof");
  here.expect_kept_nowhere("cut");

  const request_ref refused = here.ask("refused", {.server = nowhere()});
  here.expect_outcome(refused, outcome::kind::error,
                      std::make_error_code(std::errc::connection_refused).message());
  here.expect_kept_nowhere("refused");

  const request_ref longer = here.ask(std::string(200, 'x'), {.server = server.where()});
  here.expect_value(longer);
  here.expect_kept(longer->key());

  const request_ref too_long = here.ask(std::string(256, 'y'), {.server = server.where()});
  here.expect_outcome(too_long, outcome::kind::error, "invalid key: more than 255 bytes");
  found.expect(!here.of(too_long).has("connect"), "a key that cannot be sent was connected for");
  here.expect_kept_nowhere(too_long->key());

  const request_ref odd = here.ask(std::string("../..\0/\n\"\xff", 10), {.server = server.where()});
  here.expect_value(odd);
  here.expect_kept(odd->key());

  const request_ref full =
      here.ask("full", {.server = server.where(), .mem_set = 20ms, .disk_is_full = true});
  here.expect_value(full);
  found.expect(here.fetch().peek_memory("full").has_value(), "the memory has not kept it");
  found.expect(!here.fetch().peek_disk("full"), "the full disk has it");
  found.expect(here.fetch().seen().set_failures == 1, "a failed set was not counted");
  found.expect(here.of(full).finish_of("disk_set").outcome == "failed", "no failure was noted");
}

}  // namespace cached_fetch
