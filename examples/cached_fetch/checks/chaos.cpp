// SPDX-License-Identifier: MIT
// C10: everything at once, again and again: all kinds of requests, cancelled at any moment, a user
// interface that stands still now and then and is closed while a hundred requests are under way.
#include <map>

#include "checks.hpp"
#include "situations.hpp"

namespace cached_fetch {

using namespace std::chrono_literals;

namespace {

constexpr int requests_at_the_close = 100;
constexpr auto length_of_round = 600ms;
constexpr auto stall = 200ms;
constexpr auto patience = 60s;  // whoever takes longer hangs

struct asked_for {
  situation what;
  request_ref its;
};

/// What makes one round.
class round {
 public:
  round(report& found, dice& random, const town& servers)
      : found_(found), random_(random), servers_(servers), house_({}, directory_.path(), log_) {}

  void play() {
    const auto end = steady::now() + length_of_round;
    while (steady::now() < end) {
      for (int i = random_.up_to(5); i > 0; --i) ask();
      if (random_.one_in(100)) house_.ui().loop().stall(stall);
      repeat_one();
      motet::sleep_for(random_.ms_up_to(6));
    }
    for (const asked_for& each : asked_) await(each);
    found_.expect_time(house_.ui().loop().longest_gap(), 0ms, stall / 2,
                       "the heart's longest pause");
  }

  /// With a hundred on their way.
  void close() {
    for (int i = 0; i < requests_at_the_close; ++i) ask();
    motet::sleep_for(random_.ms_up_to(40));
    house_.ui().loop().close();
    for (const asked_for& each : asked_) {  // the user's wish may have been dropped with the rest
      if (each.what.is_cancelled) each.its->cancel();
    }
    for (const asked_for& each : asked_) await(each);
  }

  void judge() {
    house_.cpu().drain();
    house_.net().drain();
    const auto traces = by_keys(log_);
    const auto& told = house_.ui().told_in_the_end();
    for (const asked_for& each : asked_) judge(each, traces.at(each.what.key), told);
    found_.expect(house_.ui().touched_elsewhere() == 0, "the user interface was touched elsewhere");
    for (const std::string& each : house_.fibers_alive()) found_.expect(false, "lives on: " + each);
  }

 private:
  void ask() {
    situation what = make_situation(random_, servers_, static_cast<int>(asked_.size()));
    request_ref its = house_.ask(what.key, what.how);
    ++times_[what.key];
    if (what.is_cancelled) {
      cancel_later(its);
    }
    asked_.push_back({std::move(what), std::move(its)});
  }

  /// By the user interface, or by another thread.
  void cancel_later(const request_ref& its) {
    cancellers_.spin([this, its, delay = random_.ms_up_to(60), by_user = random_.one_in(2)] {
      motet::sleep_for(delay);
      if (!by_user) return its->cancel();
      try {
        house_.ui().loop().post([its] { its->cancel(); });
      } catch (const motet::executor_stopped&) {
        its->cancel();
      }
    });
  }

  /// What has been fetched is there, and need not be fetched again.
  void repeat_one() {
    if (asked_.empty()) return;
    const asked_for& old =
        asked_[static_cast<std::size_t>(random_.up_to(static_cast<int>(asked_.size()) - 1))];
    if (!old.its->is_over() || old.its->await().how != outcome::kind::value) return;
    if (old.what.how.disk_is_full) return;
    situation again{old.what.key, {.server = servers_.empty_place}, {outcome::kind::value}};
    request_ref its = house_.ask(again.key, again.how);
    ++times_[again.key];
    asked_.push_back({std::move(again), std::move(its)});
  }

  void await(const asked_for& each) {
    try {
      motet::with_timeout(patience, [&] { each.its->await(); });
    } catch (const motet::timed_out&) {
      throw std::runtime_error(each.what.key + " hangs");
    }
  }

  void judge(const asked_for& each, const trace& log, const std::map<std::string, news>& told) {
    const std::string& key = each.what.key;
    const outcome::kind how = each.its->await().how;
    if (how == outcome::kind::ui_closed) {
      ++closed_[key];
    } else {
      found_.expect(each.what.allows(how), key + " ended as " + describe(each.its->await()));
    }
    const auto its = told.find(key);
    const int answers = its == told.end() ? 0 : its->second.results + its->second.failures;
    found_.expect(answers <= times_[key] && answers >= 1 - closed_[key],
                  key + " was answered " + std::to_string(answers) + " times");
    for (const event& ui : log.events()) {
      found_.expect(std::string_view(ui.what) != "ui" || ui.thread == "ui", "told on " + ui.thread);
    }
    judge_caches(key, log, each.what.how);
  }

  void judge_caches(const std::string& key, const trace& log, const plan& how) {
    const bool received = log.has("received");
    found_.expect(house_.fetch().peek_memory(key).has_value() == received,
                  key + (received ? " was received and is not in memory" : " is in memory"));
    found_.expect(house_.fetch().peek_disk(key).has_value() == (received && !how.disk_is_full),
                  key + (received ? " was received and is not on disk" : " is on disk"));
    found_.expect(log.count("connect") <= 1, key + " was fetched again");
    found_.expect(log.count("start") == log.count("finish"), key + " has fibers without an end");
  }

  report& found_;
  dice& random_;
  const town& servers_;
  temporary_directory directory_;
  event_log log_;
  std::vector<asked_for> asked_;
  std::map<std::string, int> times_;   // it was asked for
  std::map<std::string, int> closed_;  // it could not be told
  house house_;
  motet::group cancellers_;
};

}  // namespace

void check_chaos(report& found, std::chrono::seconds length, std::uint64_t seed) {
  found.remark("--seed " + std::to_string(seed));
  dice random(seed);
  const town servers;
  for (const auto end = steady::now() + length; steady::now() < end && found.broken().empty();) {
    round next(found, random, servers);
    next.play();
    next.close();
    next.judge();
  }
}

}  // namespace cached_fetch
