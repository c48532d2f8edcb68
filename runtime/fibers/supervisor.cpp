// SPDX-License-Identifier: MIT
// How supervised children are started and ended, and what follows when one has ended by itself.
#include "fibers/supervisor.hpp"

#include <algorithm>
#include <motet/cancellation/cancel.hpp>
#include <utility>

#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

/// Returns: whether a child that has ended by itself is to be started again.
bool comes_back(const supervised& child) noexcept {
  switch (child.spec.restart) {
    case restart_policy::always:
      return true;
    case restart_policy::on_failure:
      return child.error != nullptr;
    case restart_policy::never:
      return false;
  }
  return false;
}

/// Cancels the child itself, not its proxy, whose turn would come too late to keep the child from
/// beginning.
void ask_to_end(supervised& child) {
  child.unwanted = true;
  if (child.body) child.body.cancel("its supervisor has ended it", {});
}

/// Makes the proxy's parent the parent of `child`, so that no other fiber sees the running fiber,
/// the proxy, in between.
void stand_aside_for(control_block& child) noexcept {
  control_block& proxy = *child.parent;
  control_block& parent = *proxy.parent;
  retain(parent);
  child.parent = &parent;
  release(proxy);
}

/// While this object lives, the running fiber, a proxy, is shown as its child.
class standing_for {
 public:
  explicit standing_for(control_block& child) noexcept
      : proxy_part_(cold(home_of(child).running())) {
    proxy_part_.proxy_for = &child;
  }
  standing_for(const standing_for&) = delete;
  standing_for& operator=(const standing_for&) = delete;
  ~standing_for() { proxy_part_.proxy_for = nullptr; }

 private:
  cold_part& proxy_part_;
};

clock::time_point after(clock::time_point start, clock::duration delay) noexcept {
  return delay > clock::time_point::max() - start ? clock::time_point::max() : start + delay;
}

}  // namespace

supervisor::supervisor(const supervise_options& settings, std::vector<child_spec>&& children)
    : settings_(settings), dice_(static_cast<unsigned>(clock::now().time_since_epoch().count())) {
  news_.reserve(children.size());
  for (child_spec& child : children) {
    children_.emplace_back(std::move(child), children_.size(), settings.delay);
  }
}

supervisor::~supervisor() {
  while (!children_.empty()) {
    ask_to_end(children_.back());
    children_.pop_back();
  }
}

void supervisor::run() {
  for (supervised& child : children_) start(child);
  while (has_unfinished()) {
    wait();
    while (!news_.empty()) look_at(*news_.front());
    start_due();
  }
}

void supervisor::start(supervised& child) {
  const fiber_ref proxy = child.proxies.spin(
      {.name = "proxy of " + child.label},
      [end_news = news(*this, child)] { end_news.owner->supervise_child(*end_news.child); });
  cold(block_of(proxy)).is_proxy = true;
  child.state = child_state::running;
  child.unwanted = false;
  child.was_cancelled = true;
  child.error = nullptr;
  child.start_time = clock::now();
  announce(kind::started, child);
}

void supervisor::start_due() {
  const clock::time_point time = clock::now();
  for (supervised& child : children_) {
    if (child.state == child_state::waiting && child.due <= time) start(child);
  }
}

/// Awaits the child from before its start, so that no other fiber receives its failure.
void supervisor::supervise_child(supervised& child) {
  if (child.unwanted) return;
  group runs;
  child.body = runs.spin({.name = child.spec.name}, [&child] {
    child.was_cancelled = false;
    try {
      child.spec.make();
    } catch (const cancelled&) {
      child.was_cancelled = true;
      throw;
    }
  });
  stand_aside_for(block_of(child.body));
  const standing_for standing(block_of(child.body));
  try {
    child.body.await();
  } catch (const cancelled&) {
    throw;
  } catch (const fiber_cancelled&) {
    if (!child.was_cancelled) child.error = std::current_exception();  // thrown by the child itself
  } catch (...) {
    child.error = std::current_exception();
  }
}

/// Called when the child and its own children are dead.
void supervisor::push_news(supervised& child) {
  child.body = {};
  child.end_time = clock::now();
  child.state = child_state::over;
  news_.push_back(&child);
  if (!resumer_) return;
  (*resumer_)();
  resumer_.reset();
}

void supervisor::end(supervised& child) {
  ask_to_end(child);
  while (child.state == child_state::running) await_news();
}

bool supervisor::has_unfinished() const noexcept {
  return std::any_of(children_.begin(), children_.end(),
                     [](const supervised& child) { return child.state != child_state::done; });
}

/// Waits until there is news, or a child is due to be started.
void supervisor::wait() {
  if (!news_.empty()) return;
  clock::time_point next = clock::time_point::max();
  for (const supervised& child : children_) {
    if (child.state == child_state::waiting) next = std::min(next, child.due);
  }
  if (next == clock::time_point::max()) {
    await_news();
    return;
  }
  const clock::duration remaining = next - clock::now();
  if (remaining > clock::duration::zero()) move_on_after(remaining, [this] { await_news(); });
}

void supervisor::await_news() {
  suspend_with([this](resumer<> wake) { resumer_.emplace(std::move(wake)); });
}

void supervisor::acknowledge(supervised& child) {
  news_.erase(std::find(news_.begin(), news_.end(), &child));
  child.state = child_state::done;
  announce(child.error == nullptr ? kind::ended : kind::failed, child);
}

void supervisor::look_at(supervised& child) {
  acknowledge(child);
  if (!comes_back(child)) return;
  if (!may_restart()) give_up(child);
  restart(child);
}

/// Ends the children that are to be restarted with `failure`, and sets the time of their start.
void supervisor::restart(supervised& failure) {
  const bool alone = settings_.strategy == restart_strategy::one_for_one;
  const std::size_t first = settings_.strategy == restart_strategy::one_for_all ? 0 : failure.index;
  const std::size_t last = alone ? failure.index + 1 : children_.size();
  failure.state = child_state::waiting;
  for (std::size_t index = last; index-- > first;) {
    supervised& child = children_[index];
    bool again = child.state == child_state::waiting;
    if (child.state == child_state::running) {
      end(child);
      acknowledge(child);
      again = child.spec.restart != restart_policy::never;
    } else if (child.state == child_state::over) {
      acknowledge(child);
      again = comes_back(child);
    }
    if (again) child.state = child_state::waiting;
  }
  const clock::duration delay = next_delay(failure);
  const clock::time_point due = after(clock::now(), delay);
  for (std::size_t index = first; index < last; ++index) {
    supervised& child = children_[index];
    if (child.state != child_state::waiting) continue;
    child.due = due;
    announce(kind::restarting, child, delay);
  }
}

void supervisor::give_up(supervised& failure) {
  for (std::size_t index = children_.size(); index-- > 0;) {
    supervised& child = children_[index];
    if (child.state == child_state::running) end(child);
    if (child.state == child_state::over) acknowledge(child);
  }
  announce(kind::gave_up, failure);
  throw too_many_restarts(failure.label, settings_.restarts, failure.error);
}

bool supervisor::may_restart() {
  const clock::time_point time = clock::now();
  while (!restarts_.empty() && time - restarts_.front() >= settings_.window) restarts_.pop_front();
  if (restarts_.size() >= settings_.restarts) return false;
  restarts_.push_back(time);
  return true;
}

/// Returns: the delay before this restart; the next one will be longer.
clock::duration supervisor::next_delay(supervised& child) {
  if (child.end_time - child.start_time >= settings_.window) child.delay = settings_.delay;
  const clock::duration full = child.delay;
  child.delay = full > settings_.longest_delay / 2 ? settings_.longest_delay : full * 2;
  const double reduction = std::uniform_real_distribution<double>(0, settings_.jitter)(dice_);
  return full - std::chrono::duration_cast<clock::duration>(full * reduction);
}

void supervisor::announce(kind event_kind, const supervised& child, clock::duration delay) const {
  if (!settings_.on_event) return;
  const bool with_error = event_kind == kind::failed || event_kind == kind::gave_up;
  settings_.on_event(
      {event_kind, child.label, with_error ? child.error : std::exception_ptr(), delay});
}

}}}  // namespace motet::MOTET_ABI::detail
