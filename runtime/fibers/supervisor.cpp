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

supervisor::supervisor(const supervise_options& how, std::vector<child_spec>&& children)
    : how_(how), dice_(static_cast<unsigned>(clock::now().time_since_epoch().count())) {
  news_.reserve(children.size());
  for (child_spec& each : children) {
    children_.emplace_back(std::move(each), children_.size(), how.delay);
  }
}

supervisor::~supervisor() {
  while (!children_.empty()) {
    ask_to_end(children_.back());
    children_.pop_back();
  }
}

void supervisor::run() {
  for (supervised& each : children_) start(each);
  while (anything_left()) {
    wait();
    while (!news_.empty()) look_at(*news_.front());
    start_due();
  }
}

void supervisor::start(supervised& child) {
  const fiber_ref proxy =
      child.proxies.spin({.name = "proxy of " + child.label},
                         [leaving = news(*this, child)] { leaving.all->keep(*leaving.child); });
  cold(block_of(proxy)).is_proxy = true;
  child.state = child_state::running;
  child.unwanted = false;
  child.was_cancelled = true;
  child.error = nullptr;
  child.started = clock::now();
  announce(kind::started, child);
}

void supervisor::start_due() {
  const clock::time_point now = clock::now();
  for (supervised& each : children_) {
    if (each.state == child_state::waiting && each.due <= now) start(each);
  }
}

/// Awaits the child from before its start, so that no other fiber receives its failure.
void supervisor::keep(supervised& child) {
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
  const standing_for seen(block_of(child.body));
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
void supervisor::leave_news(supervised& child) {
  child.body = {};
  child.ended = clock::now();
  child.state = child_state::over;
  news_.push_back(&child);
  if (!waiting_) return;
  (*waiting_)();
  waiting_.reset();
}

void supervisor::end(supervised& child) {
  ask_to_end(child);
  while (child.state == child_state::running) await_news();
}

bool supervisor::anything_left() const noexcept {
  return std::any_of(children_.begin(), children_.end(),
                     [](const supervised& each) { return each.state != child_state::done; });
}

/// Waits until there is news, or a child is due to be started.
void supervisor::wait() {
  if (!news_.empty()) return;
  clock::time_point next = clock::time_point::max();
  for (const supervised& each : children_) {
    if (each.state == child_state::waiting) next = std::min(next, each.due);
  }
  if (next == clock::time_point::max()) {
    await_news();
    return;
  }
  const clock::duration left = next - clock::now();
  if (left > clock::duration::zero()) move_on_after(left, [this] { await_news(); });
}

void supervisor::await_news() {
  suspend_with([this](resumer<> wake) { waiting_.emplace(std::move(wake)); });
}

void supervisor::acknowledge(supervised& child) {
  news_.erase(std::find(news_.begin(), news_.end(), &child));
  child.state = child_state::done;
  announce(child.error == nullptr ? kind::ended : kind::failed, child);
}

void supervisor::look_at(supervised& ended) {
  acknowledge(ended);
  if (!comes_back(ended)) return;
  if (!may_restart()) give_up(ended);
  restart(ended);
}

/// Ends the children that are to be restarted with `ended`, and sets the time of their start.
void supervisor::restart(supervised& ended) {
  const bool alone = how_.strategy == restart_strategy::one_for_one;
  const std::size_t first = how_.strategy == restart_strategy::one_for_all ? 0 : ended.place;
  const std::size_t last = alone ? ended.place + 1 : children_.size();
  ended.state = child_state::waiting;
  for (std::size_t place = last; place-- > first;) {
    supervised& each = children_[place];
    bool again = each.state == child_state::waiting;
    if (each.state == child_state::running) {
      end(each);
      acknowledge(each);
      again = each.spec.restart != restart_policy::never;
    } else if (each.state == child_state::over) {
      acknowledge(each);
      again = comes_back(each);
    }
    if (again) each.state = child_state::waiting;
  }
  const clock::duration delay = take_delay(ended);
  const clock::time_point due = after(clock::now(), delay);
  for (std::size_t place = first; place < last; ++place) {
    supervised& each = children_[place];
    if (each.state != child_state::waiting) continue;
    each.due = due;
    announce(kind::restarting, each, delay);
  }
}

void supervisor::give_up(supervised& ended) {
  for (std::size_t place = children_.size(); place-- > 0;) {
    supervised& each = children_[place];
    if (each.state == child_state::running) end(each);
    if (each.state == child_state::over) acknowledge(each);
  }
  announce(kind::gave_up, ended);
  throw too_many_restarts(ended.label, how_.restarts, ended.error);
}

bool supervisor::may_restart() {
  const clock::time_point now = clock::now();
  while (!restarts_.empty() && now - restarts_.front() >= how_.window) restarts_.pop_front();
  if (restarts_.size() >= how_.restarts) return false;
  restarts_.push_back(now);
  return true;
}

/// Returns: the delay before this restart; the next one will be longer.
clock::duration supervisor::take_delay(supervised& child) {
  if (child.ended - child.started >= how_.window) child.delay = how_.delay;
  const clock::duration full = child.delay;
  child.delay = full > how_.longest_delay / 2 ? how_.longest_delay : full * 2;
  const double left_out = std::uniform_real_distribution<double>(0, how_.jitter)(dice_);
  return full - std::chrono::duration_cast<clock::duration>(full * left_out);
}

void supervisor::announce(kind what, const supervised& child, clock::duration delay) const {
  if (!how_.on_event) return;
  const bool with_error = what == kind::failed || what == kind::gave_up;
  how_.on_event({what, child.label, with_error ? child.error : std::exception_ptr(), delay});
}

}}}  // namespace motet::MOTET_ABI::detail
