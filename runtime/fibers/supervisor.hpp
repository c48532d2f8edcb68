// SPDX-License-Identifier: MIT
// The children of one supervise(). Each child has a proxy, a fiber that spins the child, awaits
// its end and pushes the news; all decisions are taken by the supervising fiber.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <motet/fibers/fiber.hpp>
#include <motet/fibers/group.hpp>
#include <motet/fibers/supervise.hpp>
#include <motet/fibers/suspend.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace motet { inline namespace MOTET_ABI { namespace detail {

enum class child_state : std::uint8_t {
  running,
  over,     // ended, but the supervising fiber has not looked at the news yet
  waiting,  // to be started at the time `due`
  done,     // ended for good
};

struct supervised {
  supervised(child_spec&& child_description, std::size_t child_index, clock::duration first_delay)
      : spec(std::move(child_description)),
        index(child_index),
        label(spec.name.empty() ? std::to_string(index) : spec.name),
        delay(first_delay) {}

  const child_spec spec;
  const std::size_t index;
  const std::string label;
  child_state state = child_state::done;
  fiber_ref body;             // empty before the proxy has spun the child, and when it is over
  bool unwanted = false;      // the supervisor ends the child
  bool was_cancelled = true;  // the child's body was left by `cancelled`, or has not begun
  std::exception_ptr error;   // the child's last failure, or null
  clock::time_point start_time;
  clock::time_point end_time;
  clock::time_point due;
  clock::duration delay;  // before the child's next restart
  group proxies;          // last member: the proxies use the other members
};

class supervisor {
 public:
  supervisor(const supervise_options& settings, std::vector<child_spec>&& children);
  supervisor(const supervisor&) = delete;
  supervisor& operator=(const supervisor&) = delete;
  /// Ends the children that run, the last one first.
  ~supervisor();

  void run();

 private:
  using kind = supervise_event::kind;

  // Children that run:
  void start(supervised& child);
  void start_due();
  /// Pushed when a proxy ends, also if the proxy was cancelled before it could begin.
  struct news {
    news(supervisor& parent, supervised& subject) noexcept : owner(&parent), child(&subject) {}
    news(news&& other) noexcept : owner(other.owner), child(std::exchange(other.child, nullptr)) {}
    news& operator=(news&&) = delete;
    ~news() {
      if (child != nullptr) owner->push_news(*child);
    }
    supervisor* owner;
    supervised* child;
  };
  void supervise_child(supervised& child);
  void push_news(supervised& child);
  void end(supervised& child);

  // Children that have ended:
  bool has_unfinished() const noexcept;
  void wait();
  void await_news();
  void acknowledge(supervised& child);
  void look_at(supervised& child);
  void restart(supervised& child);
  [[noreturn]] void give_up(supervised& child);
  bool may_restart();
  clock::duration next_delay(supervised& child);
  void announce(kind event_kind, const supervised& child, clock::duration delay = {}) const;

  const supervise_options& settings_;
  std::vector<supervised*> news_;  // children that have ended, in that order
  std::optional<resumer<>> resumer_;
  std::deque<clock::time_point> restarts_;  // within the window
  std::minstd_rand dice_;
  std::deque<supervised> children_;  // last member: the proxies use the other members
};

}}}  // namespace motet::MOTET_ABI::detail
