// SPDX-License-Identifier: MIT
// The children of one supervise(): each has a keeper, a fiber that starts the child, awaits its
// very end and leaves the news; all decisions are taken by the supervising fiber.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <motet/fiber.hpp>
#include <motet/group.hpp>
#include <motet/supervise.hpp>
#include <motet/suspend.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace motet { inline namespace MOTET_ABI { namespace detail {

enum class child_state : std::uint8_t {
  running,
  over,     // but its news has not been looked at
  waiting,  // to be started when it is `due`
  done,     // for good
};

struct supervised {
  supervised(child_spec&& given, std::size_t its_place, clock::duration first_delay)
      : spec(std::move(given)),
        place(its_place),
        label(spec.name.empty() ? std::to_string(place) : spec.name),
        delay(first_delay) {}

  const child_spec spec;
  const std::size_t place;
  const std::string label;
  child_state state = child_state::done;
  fiber_ref body;             // empty before its keeper has started it, and when it is over
  bool unwanted = false;      // the supervisor ends it
  bool was_cancelled = true;  // left by that, or not begun
  std::exception_ptr error;   // how it failed the last time, if it did
  clock::time_point started;
  clock::time_point ended;
  clock::time_point due;
  clock::duration delay;  // before its next restart
  group keepers;          // last: its fibers use the others
};

class supervisor {
 public:
  supervisor(const supervise_options& how, std::vector<child_spec>&& children);
  supervisor(const supervisor&) = delete;
  supervisor& operator=(const supervisor&) = delete;
  /// Ends what runs, the youngest first.
  ~supervisor();

  void run();

 private:
  using kind = supervise_event::kind;

  // What runs.
  void start(supervised& child);
  void start_due();
  /// Left when a keeper ends, also if somebody has cancelled it before it could begin.
  struct news {
    news(supervisor& of, supervised& about) noexcept : all(&of), child(&about) {}
    news(news&& other) noexcept : all(other.all), child(std::exchange(other.child, nullptr)) {}
    news& operator=(news&&) = delete;
    ~news() {
      if (child != nullptr) all->leave_news(*child);
    }
    supervisor* all;
    supervised* child;
  };
  void keep(supervised& child);
  void leave_news(supervised& child);
  void end(supervised& child);

  // What has ended.
  bool anything_left() const noexcept;
  void wait();
  void await_news();
  void acknowledge(supervised& child);
  void look_at(supervised& ended);
  void restart(supervised& ended);
  [[noreturn]] void give_up(supervised& ended);
  bool may_restart();
  clock::duration take_delay(supervised& child);
  void tell(kind what, const supervised& child, clock::duration delay = {}) const;

  const supervise_options& how_;
  std::vector<supervised*> news_;  // who is over, in the order in which they ended
  std::optional<resumer<>> waiting_;
  std::deque<clock::time_point> restarts_;  // within the window
  std::minstd_rand dice_;
  std::deque<supervised> children_;  // last: their keepers use the others
};

}}}  // namespace motet::MOTET_ABI::detail
