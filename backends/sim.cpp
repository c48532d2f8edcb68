// SPDX-License-Identifier: MIT
// Virtual time over real descriptors; read this backend first. Descriptors are tried, never waited
// for while a timer is set: when none is ready, the clock jumps to the next deadline. Each poll
// ages the clock by a microsecond, or a program that is always busy would stand still. While
// another thread does something for a fiber, or might wake the only fibers there are, the clock
// does not jump, but goes with that of the world.
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <motet/detail/words/list.hpp>
#include <new>
#include <utility>
#include <vector>

#include "attempt.hpp"
#include "factories.hpp"
#include "words/remote_work.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

struct waiting_tag;

/// What sim keeps in an operation's scratch.
struct waiting : tagged_link<waiting_tag> {
  operation* op = nullptr;
  std::size_t look = 0;  // its place among the looks, if it has one
};
static_assert(sizeof(waiting) <= sizeof(operation::scratch));

waiting& waiting_of(operation& op) noexcept {
  return *std::launder(reinterpret_cast<waiting*>(op.scratch));
}

class sim_backend final : public backend {
 public:
  std::string_view name() const noexcept override { return "sim"; }
  bool virtual_time() const noexcept override { return true; }
  time_point now() const noexcept override { return now_; }
  void listen(int wake_descriptor) override { wake_descriptor_ = wake_descriptor; }
  void keep_pace(bool on) noexcept override { keeps_pace_ = on; }

  bool submit(operation& op) noexcept override {
    if (attempt(op)) return true;
    auto* place = ::new (static_cast<void*>(op.scratch)) waiting;
    place->op = &op;
    waiting_.push_back(*place);
    return false;
  }

  void cancel(operation& op) noexcept override {
    if (op.cancelling || !waiting_of(op).linked()) return;
    op.cancelling = true;
    op.result = -ECANCELED;
    finish(op);
  }

  void poll(time_point deadline, completions& done) override {
    now_ += std::chrono::microseconds(1);
    try_all();
    if (over_.empty() && !woken() && deadline != time_point::min()) {
      if (deadline == time_point::max()) {
        wait_for_real(nullptr);
        try_all();
      } else if (keeps_pace_ || work_elsewhere::under_way()) {
        wait_until(deadline);
        try_all();
      } else if (deadline > now_) {
        now_ = deadline;
      }
    }
    done.append(over_);
  }

 private:
  void finish(operation& op) noexcept {
    waiting_of(op).unlink();
    over_.push(op);
  }

  void try_all() noexcept {
    for (waiting* each = waiting_.front(); each != nullptr;) {
      waiting* next = waiting_.next(*each);
      if (attempt(*each->op)) finish(*each->op);
      each = next;
    }
  }

  bool woken() const noexcept {
    std::uint64_t count = 0;
    return ::read(wake_descriptor_, &count, sizeof count) > 0;
  }

  /// Has the clock go as fast as the real one until then, or until something happens.
  void wait_until(time_point deadline) noexcept {
    if (deadline <= now_) return;
    const auto left = deadline - now_;
    const auto whole = std::chrono::floor<std::chrono::seconds>(left);
    const timespec limit{whole.count(), (left - whole).count()};
    const auto from = std::chrono::steady_clock::now();
    wait_for_real(&limit);
    now_ += std::min(left, std::chrono::steady_clock::now() - from);
  }

  /// Whatever happens next, until the limit if there is one, happens to a descriptor.
  void wait_for_real(const timespec* limit) noexcept {
    constexpr timespec soon{0, 1'000'000};
    bool all_watched = false;
    try {
      all_watched = list_looks();
    } catch (const std::bad_alloc&) {
      // Whoever is not looked at is tried again soon.
    }
    const bool longer = limit == nullptr || limit->tv_sec > 0 || limit->tv_nsec > soon.tv_nsec;
    ::ppoll(looks_.data(), looks_.size(), longer && !all_watched ? &soon : limit, nullptr);
    note_fruitless();
    woken();
  }

  /// What was ready the last time and would have waited all the same is left out once.
  /// Returns: whether there was none.
  bool list_looks() {
    bool all = true;
    looks_.clear();
    looks_.push_back({wake_descriptor_, POLLIN, 0});
    for (waiting* each = waiting_.front(); each != nullptr; each = waiting_.next(*each)) {
      each->look = 0;
      if (std::exchange(each->op->fruitless, std::uint8_t{0}) != 0) {
        all = false;
      } else {
        looks_.push_back({each->op->fd, readiness_of(*each->op), 0});
        each->look = looks_.size() - 1;
      }
    }
    return all;
  }

  /// Whoever is ready is tried next; it has been fruitless if it waits afterwards.
  void note_fruitless() noexcept {
    for (waiting* each = waiting_.front(); each != nullptr; each = waiting_.next(*each)) {
      const bool ready = each->look != 0 && looks_[each->look].revents != 0;
      each->op->fruitless = ready ? 1 : 0;
    }
  }

  time_point now_ = std::chrono::steady_clock::now();
  int wake_descriptor_ = -1;
  bool keeps_pace_ = false;
  list<waiting, waiting_tag> waiting_;
  completions over_;
  std::vector<pollfd> looks_;
};

}  // namespace

std::unique_ptr<backend> make_sim_backend(const backend_options&) {
  return std::make_unique<sim_backend>();
}

}}}  // namespace motet::MOTET_ABI::detail
