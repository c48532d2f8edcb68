// SPDX-License-Identifier: MIT
// C10: everything at once, again and again: requests of all kinds, cancelled at any moment, and a
// user interface that stands still now and then, and is closed while a hundred requests are under
// way.
#include <map>

#include "checks.hpp"
#include "situations.hpp"

namespace fetch_test {

using namespace std::chrono_literals;

namespace {

constexpr int requests_at_the_close = 100;
constexpr auto length_of_round = 600ms;
constexpr auto stall = 200ms;
constexpr auto patience = 60s;  // a longer request hangs

struct play_part {
  situation scene;
  question_ref wish;
};

/// The life of one house.
class round {
 public:
  round(report& findings, dice& random, const town& servers)
      : findings_(findings),
        random_(random),
        servers_(servers),
        house_({}, directory_.path(), log_) {}

  void play() {
    const auto end = steady::now() + length_of_round;
    while (steady::now() < end) {
      for (int i = random_.up_to(5); i > 0; --i) ask();
      if (random_.one_in(100)) house_.ui().loop().stall(stall);
      repeat_one();
      motet::sleep_for(random_.ms_up_to(6));
    }
    for (const play_part& part : wishes_) await(part);
    findings_.expect_time(house_.ui().loop().longest_gap(), 0ms, stall / 2,
                          "the heart's longest pause");
  }

  /// Closes the user interface while a hundred requests are under way.
  void close() {
    for (int i = 0; i < requests_at_the_close; ++i) ask();
    motet::sleep_for(random_.ms_up_to(40));
    house_.ui().loop().close();
    for (const play_part& part : wishes_) {  // the closed loop may have dropped the cancellation
      if (part.scene.is_cancelled) part.wish->cancel();
    }
    for (const play_part& part : wishes_) await(part);
  }

  void judge() {
    house_.cpu().drain();
    house_.net().drain();
    const auto traces = by_keys(log_);
    const auto& news_by_key = house_.ui().final_news();
    for (const play_part& part : wishes_) judge(part, traces.at(part.scene.key), news_by_key);
    findings_.expect(house_.ui().strangers() == 0, "the user interface was touched elsewhere");
    for (const std::string& fiber : house_.fibers_alive())
      findings_.expect(false, "lives on: " + fiber);
  }

 private:
  void ask() {
    situation scene = make_situation(random_, servers_, static_cast<int>(wishes_.size()));
    question_ref wish = house_.ask(scene.key, scene.course);
    ++counts_[scene.key];
    if (scene.is_cancelled) {
      cancel_later(wish);
    }
    wishes_.push_back({std::move(scene), std::move(wish)});
  }

  /// Cancels from the user interface, or from another thread.
  void cancel_later(const question_ref& wish) {
    cancellers_.spin([this, wish, delay = random_.ms_up_to(60), is_by_user = random_.one_in(2)] {
      motet::sleep_for(delay);
      if (!is_by_user) return wish->cancel();
      try {
        house_.ui().loop().post([wish] { wish->cancel(); });
      } catch (const motet::executor_stopped&) {
        wish->cancel();
      }
    });
  }

  /// A value that has been fetched need not be fetched again.
  void repeat_one() {
    if (wishes_.empty()) return;
    const play_part& part =
        wishes_[static_cast<std::size_t>(random_.up_to(static_cast<int>(wishes_.size()) - 1))];
    if (!part.wish->is_over() || part.wish->await().end != outcome::kind::value) return;
    if (part.scene.course.disk_is_full) return;
    situation repeat{part.scene.key, {.server = servers_.empty_place}, {outcome::kind::value}};
    question_ref wish = house_.ask(repeat.key, repeat.course);
    ++counts_[repeat.key];
    wishes_.push_back({std::move(repeat), std::move(wish)});
  }

  void await(const play_part& part) {
    try {
      motet::with_timeout(patience, [&] { part.wish->await(); });
    } catch (const motet::timed_out&) {
      throw std::runtime_error(part.scene.key + " hangs");
    }
  }

  void judge(const play_part& part, const trace& log,
             const std::map<std::string, news>& news_by_key) {
    const std::string& key = part.scene.key;
    const outcome::kind end = part.wish->await().end;
    if (end == outcome::kind::ui_closed) {
      ++losses_[key];
    } else {
      findings_.expect(part.scene.allows(end), key + " ended as " + describe(part.wish->await()));
    }
    const auto entry = news_by_key.find(key);
    const int answers =
        entry == news_by_key.end() ? 0 : entry->second.results + entry->second.failures;
    findings_.expect(answers <= counts_[key] && answers >= 1 - losses_[key],
                     key + " was answered " + std::to_string(answers) + " times");
    for (const event& ui : log.events()) {
      findings_.expect(std::string_view(ui.kind) != "ui" || ui.thread == "ui",
                       "told on " + ui.thread);
    }
    judge_caches(key, log, part.scene.course);
  }

  void judge_caches(const std::string& key, const trace& log, const plan& course) {
    const bool is_received = log.has("received");
    findings_.expect(house_.fetch().peek_memory(key).has_value() == is_received,
                     key + (is_received ? " was received and is not in memory" : " is in memory"));
    findings_.expect(
        house_.fetch().peek_disk(key).has_value() == (is_received && !course.disk_is_full),
        key + (is_received ? " was received and is not on disk" : " is on disk"));
    findings_.expect(log.count("connect") <= 1, key + " was fetched again");
    findings_.expect(log.count("start") == log.count("finish"), key + " has fibers without an end");
  }

  report& findings_;
  dice& random_;
  const town& servers_;
  temporary_directory directory_;
  event_log log_;
  std::vector<play_part> wishes_;
  std::map<std::string, int> counts_;  // of requests
  std::map<std::string, int> losses_;  // of outcomes that could not be shown
  house house_;
  motet::group cancellers_;
};

}  // namespace

void check_chaos(report& findings, std::chrono::seconds length, std::uint64_t seed) {
  findings.remark("--seed " + std::to_string(seed));
  dice random(seed);
  const town servers;
  for (const auto end = steady::now() + length; steady::now() < end && findings.broken().empty();) {
    round act(findings, random, servers);
    act.play();
    act.close();
    act.judge();
  }
}

}  // namespace fetch_test
