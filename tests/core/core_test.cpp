// SPDX-License-Identifier: MIT
// The core on its own, linked with the rooms below it and nothing else: fibers that switch, sleep
// and get mail. Of the upward calls there is only the first function of a fiber.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <motet/runtime/backend.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "catch.hpp"
#include "core/hooks.hpp"
#include "core/mail/mailbox.hpp"
#include "core/store/hand_on_for_good.hpp"
#include "core/thread_state.hpp"

namespace motet { inline namespace MOTET_ABI { namespace detail {

namespace {

void leave_family(control_block& fiber) {
  list<control_block, children_tag>::remove(fiber);
  --fiber.belongs_to->size;
  --fiber.belongs_to->lasting_count;
}

void live(void* block) {
  auto* fiber = static_cast<control_block*>(block);
  sanitizer::after_switch(fiber->resume_context.shadow);
  thread_state& thread = home_of(*fiber);
  for (;;) {
    fiber->kind->run(fiber->body, nullptr, fiber->result);
    if (fiber->kind->destroy_body != nullptr) fiber->kind->destroy_body(fiber->body);
    fiber->ending = true;
    thread.forget(*fiber);
    fiber->state.store(fiber_state::dead);
    leave_family(*fiber);
    fiber = &thread.hand_on_for_good();
  }
}

}  // namespace

constinit const upward_calls hooks = {.fiber_main = &live};

}}}  // namespace motet::MOTET_ABI::detail

namespace {

using motet::clock;
using motet::detail::control_block;
using motet::detail::thread_state;

/// Performs no operation, and waits with poll(2).
class waiting_backend final : public motet::backend {
 public:
  std::string_view name() const noexcept override { return "waiting"; }
  time_point now() const noexcept override { return std::chrono::steady_clock::now(); }
  bool submit(motet::operation&) noexcept override { return false; }
  void cancel(motet::operation&) noexcept override {}
  void listen(int wake_descriptor) override { wake_ = wake_descriptor; }

  void poll(time_point deadline, motet::completions&) override {
    if (deadline == time_point::min()) return;
    const auto remaining = std::chrono::ceil<std::chrono::milliseconds>(deadline - now());
    pollfd look{wake_, POLLIN, 0};
    const bool endless = deadline == time_point::max();
    if (::poll(&look, 1, endless ? -1 : static_cast<int>(std::max(remaining.count(), 0L))) <= 0)
      return;
    std::uint64_t count = 0;
    REQUIRE(::read(wake_, &count, sizeof count) == sizeof count);
  }

 private:
  int wake_ = -1;
};

/// A thread's state, made without runtime/run.cpp.
class core {
 public:
  core() : thread_({}, std::make_unique<waiting_backend>(), nullptr) {
    motet::detail::set_self(&thread_);
  }
  core(const core&) = delete;
  core& operator=(const core&) = delete;
  ~core() {
    thread_.mail().close();
    motet::detail::set_self(nullptr);
  }

  thread_state& thread() { return thread_; }
  template <typename F>
  void spin(F&& body) {
    thread_.cleaner.spin(std::forward<F>(body), "a fiber");
  }
  void run_all() {
    while (thread_.living() > 0) thread_.snooze();
  }

 private:
  thread_state thread_;
};

/// Sleeps by a timer in the running fiber's frame.
void sleep_for(thread_state& thread, clock::duration span) {
  struct sleeper : motet::detail::timer {
    motet::detail::wait_record wait{"sleep"};
  } asleep;
  asleep.due = thread.time.after(span);
  asleep.fiber = &thread.running();
  asleep.fire = [](motet::detail::timer& due) noexcept {
    due.fiber->home->resume(static_cast<sleeper&>(due).wait, motet::detail::wake_reason::time);
  };
  thread.time.arm(asleep);
  CHECK(thread.park(asleep.wait) == motet::detail::wake_reason::time);
}

}  // namespace

TEST_CASE("thread_core::snooze() takes turns among fibers", "[core]") {
  core local_core;
  std::string order;
  for (const char name : {'a', 'b', 'c'}) {
    local_core.spin([&local_core, &order, name]() noexcept {
      for (int turn = 0; turn < 3; ++turn) {
        order += name;
        local_core.thread().snooze();
      }
    });
  }
  local_core.run_all();
  CHECK(order == "abcabcabc");
}

TEST_CASE("thread_core::park() sleeps in the backend until a timer is due", "[core]") {
  core local_core;
  std::string order;
  for (const int span : {30, 10, 20}) {
    local_core.spin([&local_core, &order, span] {
      const auto start = std::chrono::steady_clock::now();
      sleep_for(local_core.thread(), std::chrono::milliseconds(span));
      CHECK(std::chrono::steady_clock::now() - start >= std::chrono::milliseconds(span));
      order += std::to_string(span) + " ";
    });
  }
  sleep_for(local_core.thread(), std::chrono::milliseconds(50));
  local_core.run_all();
  CHECK(order == "10 20 30 ");
}

TEST_CASE("mailbox::push() of another thread ends a sleep", "[core]") {
  core local_core;
  struct letter : motet::detail::post {
    motet::detail::wait_record wait{"mail"};
  } message;
  message.handle_post = [](motet::detail::post& item, thread_state& home) noexcept {
    home.resume(static_cast<letter&>(item).wait, motet::detail::wake_reason::handed);
  };
  auto& mail = local_core.thread().mail();
  std::thread sender([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(mail.push(message));
  });
  local_core.thread().add_pending(local_core.thread().running());
  CHECK(local_core.thread().park(message.wait) == motet::detail::wake_reason::handed);
  local_core.thread().remove_pending(local_core.thread().running());
  sender.join();
}

TEST_CASE("thread_core: a thousand fibers leave no stack behind", "[core]") {
  core local_core;
  int ends = 0;
  for (int i = 0; i < 1000; ++i) {
    local_core.spin([&local_core, &ends] {
      local_core.thread().snooze();
      ++ends;
    });
  }
  local_core.run_all();
  CHECK(ends == 1000);
  CHECK(local_core.thread().living() == 0);
}
