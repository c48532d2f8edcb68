// SPDX-License-Identifier: MIT
// C8: the user sees the reason of an error, and sees a value even if a cache cannot keep it.
#include "checks.hpp"

namespace fetch_test {

using namespace std::chrono_literals;

void check_errors(report& findings) {
  const own_server server({.reply_after = 5ms});
  const own_server rude_server({.reply_after = 5ms, .close_after = 1});
  stage scene(findings);

  const question_ref fragment = scene.ask("cut", {.server = rude_server.where()});
  scene.expect_outcome(fragment, outcome::kind::error, "eof");
  scene.expect_kept_nowhere("cut");

  const question_ref refusal = scene.ask("refused", {.server = nowhere()});
  scene.expect_outcome(refusal, outcome::kind::error,
                       std::make_error_code(std::errc::connection_refused).message());
  scene.expect_kept_nowhere("refused");

  const question_ref long_wish = scene.ask(std::string(200, 'x'), {.server = server.where()});
  scene.expect_value(long_wish);
  scene.expect_kept(long_wish->key());

  const question_ref endless_wish = scene.ask(std::string(256, 'y'), {.server = server.where()});
  scene.expect_outcome(endless_wish, outcome::kind::error, "invalid key: more than 255 bytes");
  findings.expect(!scene.trace_of(endless_wish).has("connect"),
                  "a key that cannot be sent was connected for");
  scene.expect_kept_nowhere(endless_wish->key());

  const question_ref odd_wish =
      scene.ask(std::string("../..\0/\n\"\xff", 10), {.server = server.where()});
  scene.expect_value(odd_wish);
  scene.expect_kept(odd_wish->key());

  const question_ref spill =
      scene.ask("full", {.server = server.where(), .mem_set = 20ms, .disk_is_full = true});
  scene.expect_value(spill);
  findings.expect(scene.fetch().peek_memory("full").has_value(), "the memory has not kept it");
  findings.expect(!scene.fetch().peek_disk("full"), "the full disk has it");
  findings.expect(scene.fetch().counts().set_failures == 1, "a failed set was not counted");
  findings.expect(scene.trace_of(spill).finish_of("disk_set").outcome == "failed",
                  "no failure was noted");
}

}  // namespace fetch_test
