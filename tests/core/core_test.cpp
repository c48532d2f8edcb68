// SPDX-License-Identifier: MIT
// The core on its own, linked with the rooms below it and nothing else: fibers that switch, sleep
// and get mail. Of the upward calls there are the first function of a fiber, and a stand-in for
// what other threads ask of one.
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <motet/runtime/backend.hpp>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "catch.hpp"
#include "core/hooks.hpp"
#include "core/mail/ask.hpp"
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

wait_record* asked_fiber = nullptr;  // what it waits in
int meetings = 0;                    // of a thread that was woken with a mailbox's lock

void resume_asked_fiber(post& item, thread_state& home) noexcept {
  std::unique_lock guard(home.mail().lock(), std::try_to_lock);
  if (!guard.owns_lock()) {
    ++meetings;
    guard.lock();
  }
  static_cast<remote_requests&>(item).queued = false;
  guard.unlock();
  home.resume(*asked_fiber, wake_reason::handed);
}

}  // namespace

constinit const upward_calls hooks = {.do_requests = &resume_asked_fiber, .fiber_main = &live};

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

namespace {

/// While it exists, this thread and those it starts share one processor.
class one_processor {
 public:
  one_processor() {
    REQUIRE(::sched_getaffinity(0, sizeof old_, &old_) == 0);
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(::sched_getcpu(), &cpus);
    REQUIRE(::sched_setaffinity(0, sizeof cpus, &cpus) == 0);
  }
  one_processor(const one_processor&) = delete;
  one_processor& operator=(const one_processor&) = delete;
  ~one_processor() { ::sched_setaffinity(0, sizeof old_, &old_); }

 private:
  cpu_set_t old_;
};

bool sleeps(const motet::detail::mailbox& mail) {
  return motet::detail::mailbox::rests(__atomic_load_n(mail.word_address(), __ATOMIC_ACQUIRE));
}

}  // namespace

// The system takes the processor away from an idle-class thread as soon as that wakes another one.
TEST_CASE("ask() releases the mailbox's lock before it wakes the thread", "[core]") {
  constexpr int rounds = 20;
  const one_processor cpu;
  core local_core;
  control_block& fiber = local_core.thread().running();
  motet::detail::wait_record wait{"a request"};
  motet::detail::asked_fiber = &wait;
  motet::detail::meetings = 0;
  std::thread sender([&] {
    const sched_param priority{};
    REQUIRE(::pthread_setschedparam(::pthread_self(), SCHED_IDLE, &priority) == 0);
    for (int i = 0; i < rounds; ++i) {
      while (!sleeps(local_core.thread().mail())) ::sched_yield();
      motet::detail::ask(fiber, [](motet::detail::remote_requests&) { return true; });
    }
  });
  for (int i = 0; i < rounds; ++i) {
    wait.reopen();
    local_core.thread().add_pending(fiber);
    local_core.thread().park(wait);
    local_core.thread().remove_pending(fiber);
  }
  sender.join();
  CHECK(motet::detail::meetings == 0);
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
