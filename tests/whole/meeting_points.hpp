// SPDX-License-Identifier: MIT
// Primitives at which the fibers of a random world meet, and what must hold of each in the end.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <motet/motet.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace testing {

class meeting_points {
 public:
  static constexpr std::uint32_t kinds = 8;  // of visits; the last one spins

  /// One visit, which `limit` may end. `child` may be called, and may throw.
  template <typename Child>
  void visit(std::uint32_t dice, std::chrono::microseconds limit, Child&& child) {
    motet::move_on_after(limit, [&] {
      switch (dice % kinds) {
        case 0:
          return hold_permit(dice);
        case 1:
          return meet();
        case 2:
          return do_once(dice);
        case 3:
          return publish();
        case 4:
          return listen();
        case 5:
          return send_on_any(dice);
        case 6:
          return receive_from_any();
        default:
          return start_one(child);
      }
    });
  }

  /// After the last visit. Returns: what is wrong, or nothing.
  std::string wrong() {
    if (wrong_ != nullptr) return wrong_.load();
    if (permits_.stats().free != 3 || permits_.stats().waiting != 0) return "permits are lost";
    if (passes_ != 2 * lasts_) return "a round of the barrier had another number of parties";
    if (once_calls_ > 1) return "once was done twice";
    for (auto& line : lines_) {
      line.close();
      for (const std::uint64_t number : line) sum_received_ += number;
    }
    return sum_sent_ == sum_received_ ? "" : "items are lost";
  }

 private:
  void check(bool holds, const char* otherwise) {
    if (!holds) wrong_ = otherwise;
  }

  void hold_permit(std::uint32_t dice) {
    const motet::permit_guard guard(permits_, 1 + dice / 8 % 2);
    check(++occupants_ <= 3, "too many have permits");
    struct leave {
      std::atomic<int>& occupants;
      ~leave() { --occupants; }
    } leaving{occupants_};
    motet::snooze();
  }

  void meet() {
    if (pair_.arrive_and_wait()) ++lasts_;
    ++passes_;
  }

  void do_once(std::uint32_t dice) {
    once_.call([&] {
      motet::snooze();
      if (dice / 8 % 16 != 0) motet::sleep_for(std::chrono::milliseconds(1));
      ++once_calls_;
    });
  }

  void publish() {
    news_.push(++published_);
    state_.set(published_);
  }

  void listen() {
    auto news = news_.subscribe();
    auto states = state_.subscribe();
    for (int i = 0; i < 3; ++i) {
      try {
        motet::select(motet::on_next(news),
                      motet::on_next(states, [&](std::optional<std::uint64_t> state) {
                        check(state.has_value(), "a watch has ended early");
                      }));
      } catch (const motet::items_missed& error) {
        check(error.count() > 0, "nothing was missed");
      }
    }
  }

  void send_on_any(std::uint32_t dice) {
    const std::uint64_t number = dice;
    std::vector<std::uint64_t> items(lines_.size(), number);
    const auto branch = [&](std::size_t i) {
      return motet::on_push(lines_[i], std::move(items[i]));
    };
    std::vector<decltype(branch(0))> cases;
    for (std::size_t i = 0; i < lines_.size(); ++i) cases.push_back(branch(i));
    cases[dice / 8 % cases.size()].only_if(false);
    motet::select(cases);
    sum_sent_ += number;
  }

  void receive_from_any() {
    const auto branch = [this](motet::channel<std::uint64_t>& line) {
      return motet::on_pop(
          line, [this](std::optional<std::uint64_t> number) { sum_received_ += *number; });
    };
    std::vector<decltype(branch(lines_[0]))> cases;
    for (auto& line : lines_) cases.push_back(branch(line));
    motet::select(cases);
  }

  template <typename Child>
  void start_one(Child& child) {
    motet::group members;
    motet::latch start(1);
    const int value = members.start<int>([&](motet::promise<int>& ready) {
      motet::snooze();
      start.count_down();
      ready.set_value(7);
      child();
    });
    check(value == 7 && start.is_open(), "a fiber was ready before it began");
    members.await_all();
  }

  std::atomic<const char*> wrong_{nullptr};
  motet::semaphore permits_{3};
  std::atomic<int> occupants_{0};
  motet::barrier pair_{2};
  std::atomic<int> lasts_{0};
  std::atomic<int> passes_{0};
  motet::once once_;
  std::atomic<int> once_calls_{0};
  motet::broadcast<std::uint64_t> news_{8};
  motet::watch<std::uint64_t> state_{0};
  std::atomic<std::uint64_t> published_{0};
  std::array<motet::channel<std::uint64_t>, 3> lines_{motet::channel<std::uint64_t>(0),
                                                      motet::channel<std::uint64_t>(1),
                                                      motet::channel<std::uint64_t>(2)};
  std::atomic<std::uint64_t> sum_sent_{0};
  std::atomic<std::uint64_t> sum_received_{0};
};

}  // namespace testing
